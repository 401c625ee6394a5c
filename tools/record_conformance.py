"""Records a GPU's results on the conformance corpus, or compares a device with the record.

    python tools/record_conformance.py                     # record on cuda:0 into the fixtures
    python tools/record_conformance.py --out DIR           # record somewhere else
    python tools/record_conformance.py --check             # run again and compare; writes nothing
    python tools/record_conformance.py --check --device cpu --only '^mma'
    python tools/record_conformance.py --assemble ptxas    # no GPU: does everything assemble?

Cases run in worker processes, a few hundred in each. A case that ends its process or its CUDA
context, or that hangs, is recorded as failed, and a new process continues with the rest. Each case
runs three times; results that differ between runs are a failure too. Exit status 1 if anything
failed or differed.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import json
import platform
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import shared_tests  # noqa: E402, F401
from conformance import fixtures, runner  # noqa: E402
from conformance.case import Case  # noqa: E402
from conformance.corpus import corpus, digest  # noqa: E402

CHUNK = 200
TIMES = 3
FATAL = re.compile(r"CUDA_ERROR_(?!INVALID_(PTX|SOURCE|IMAGE)|NO_BINARY|UNSUPPORTED_PTX)")


# -- worker ---------------------------------------------------------------------------


def worker(device_name: str) -> int:
    """Runs the cases named on stdin; prints a line of JSON before and after each."""
    from ptxgen.errors import PtxgenError
    from ptxgen.runtime import get_device

    names = json.load(sys.stdin)

    def say(**message: Any) -> None:
        print(json.dumps(message), flush=True)

    device = get_device(device_name)
    cases = corpus()
    for name in names:
        say(start=name)
        try:
            results = runner.run(cases[name], device, TIMES)
        except PtxgenError as last:
            error = last
            while isinstance(error.__context__, PtxgenError):  # the first, before cleaning up
                error = error.__context__
            say(name=name, failure=f"{type(error).__name__}: {error}")
            if device.kind == "cuda" and FATAL.search(str(error)):
                return 3  # the context may be unusable: a new process goes on
            continue
        except Exception as error:
            say(name=name, failure=f"{type(error).__name__}: {error}")
            continue
        found = {runner.same_nan(cases[name], result) for result in results}
        if len(found) > 1:
            say(name=name, failure="the results differ from run to run")
        else:
            say(name=name, result=base64.b64encode(results[0]).decode())
    return 0


class Runs:
    """Runs conformance cases in worker processes; collects results and failures by case name."""

    def __init__(self, device: str, timeout: float, jobs: int) -> None:
        self.device, self.timeout, self.jobs = device, timeout, jobs
        self.results: dict[str, bytes] = {}
        self.failures: dict[str, str] = {}
        self._lock = threading.Lock()
        self._total = 0

    def all(self, cases: list[Case]) -> None:
        """Runs all cases, ``jobs`` processes at a time."""
        names = [case.name for case in cases]
        self._total = len(names)
        # Every k-th case to a chunk, so that the slow families are spread.
        count = max(self.jobs, -(-len(names) // CHUNK))
        chunks = [names[i::count] for i in range(count)]
        with ThreadPoolExecutor(self.jobs) as pool:
            for _ in pool.map(self._chunk, chunks):
                pass

    def _chunk(self, names: list[str]) -> None:
        left = names
        while left:
            done = self._process(left)
            left = left[done:]

    def _process(self, names: list[str]) -> int:
        """Runs one worker process until it ends; returns the number of cases it completed or
        failed.
        """
        command = [sys.executable, __file__, "--worker", "--device", self.device]
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            assert process.stdin
            process.stdin.write(json.dumps(names))
            process.stdin.close()
            done, running, why = 0, "", ""
            for message in self._messages(process):
                if message is None:
                    why = f"no answer in {self.timeout:g} s"
                    break
                if "start" in message:
                    running = message["start"]
                    continue
                self._keep(message["name"], message.get("result"), message.get("failure", ""))
                done, running = done + 1, ""
            if process.poll() is None and why:
                process.kill()
            status = process.wait()
            if running or (status and not done):  # it died on a case, or before the first
                errors.seek(0)
                tail = " | ".join(errors.read().strip().splitlines()[-3:])
                why = why or f"the process ended with status {status}"
                self._keep(running or names[0], None, f"{why} {tail}".strip())
                done += 1
            elif not status and done < len(names):
                raise RuntimeError(f"a worker ended after {done} of {len(names)} cases")
        return done

    def _messages(self, process: subprocess.Popen[str]) -> Iterator[dict[str, Any] | None]:
        """Yields the messages of a worker; None, as the last, if it is silent for too long."""
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert process.stdout
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        grace = 120.0  # the first answer waits for the imports and the context
        while True:
            try:
                line = lines.get(timeout=self.timeout + grace)
            except queue.Empty:
                yield None
                return
            if not line:
                return
            yield json.loads(line)
            grace = 0.0

    def _keep(self, name: str, result: str | None, failure: str) -> None:
        with self._lock:
            if result is None:
                self.failures[name] = failure
                print(f"FAILED {name}: {failure}", flush=True)
            else:
                self.results[name] = base64.b64decode(result)
            done = len(self.results) + len(self.failures)
            if done % 200 == 0 or done == self._total:
                print(f"{done} of {self._total} cases, {len(self.failures)} failed", flush=True)


# -- what it can do ---------------------------------------------------------------------


def machine(device_name: str) -> dict[str, Any]:
    """Returns a record of GPU, architecture, driver, host and date of the results."""
    code = (
        "import json, sys; from ptxgen.runtime import get_device; "
        "d = get_device(sys.argv[1]); print(json.dumps([d.name, list(d.compute), d.arch]))"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code, device_name],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if asked.returncode:
        sys.exit(asked.stderr.strip().rpartition("\n")[2])
    name, compute, arch = json.loads(asked.stdout.splitlines()[-1])
    driver = "unknown"
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        driver = asked.stdout.strip().splitlines()[0] if asked.stdout.strip() else "unknown"
    return {
        "gpu": name,
        "compute_capability": compute,
        "arch": arch,
        "driver": driver,
        "host": platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def assemble(ptxas: str, cases: list[Case]) -> int:
    """Assembles every case with ptxas for sm_90a; returns the number of failures."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:

        def one(item: tuple[int, Case]) -> tuple[str, str]:
            number, case = item
            path = Path(folder) / f"{number}.ptx"
            path.write_text(case.ptx)
            command = [ptxas, "-arch=sm_90a", str(path), "-o", str(path.with_suffix(".cubin"))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return case.name, done.stderr.strip() or ("" if done.returncode == 0 else "?")

        for name, trouble in pool.map(one, enumerate(cases)):
            if trouble:
                failed += 1
                print(f"FAILED {name}: {trouble}")
    print(f"{len(cases)} cases assembled, {failed} failed")
    return failed


def main() -> int:
    """Records, checks or assembles; returns 1 if anything failed or differed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=fixtures.DIRECTORY, help="where to write")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--only", default="", help="a regular expression for names (with --check)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=4, help="processes at a time")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one case")
    parser.add_argument("--assemble", metavar="PTXAS", help="only assemble, with this ptxas")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.device)
    pattern = re.compile(options.only)
    cases = [case for case in corpus().values() if pattern.search(case.name)]
    if options.assemble:
        return min(assemble(options.assemble, cases), 1)
    if options.only and not options.check:
        parser.error("--only belongs to --check: a recording is of the whole corpus")

    about = machine(options.device)
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    runs = Runs(options.device, options.timeout, options.jobs)
    runs.all(cases)
    if not options.check:
        about |= {"cases": len(cases), "corpus": digest(cases)}
        size = fixtures.write(options.out, about, cases, runs.results, runs.failures)
        print(f"{len(runs.results)} results and {len(runs.failures)} failures in {size} bytes")
        return min(len(runs.failures), 1)
    recorded, wrong = fixtures.Fixtures(options.out), 0
    for case in cases:
        if case.name not in runs.results:
            continue  # reported as it failed
        if recorded.digests.get(case.name) != case.digest or case.name in recorded.failures:
            found = f"{case.name}: nothing is recorded for this kernel and these operands"
        else:
            expected = recorded.results(case.name)
            found = runner.difference(case, runs.results[case.name], expected)
        if found:
            wrong += 1
            print(found)
    print(f"{len(cases)} cases, {len(runs.failures)} failed, {wrong} different")
    return min(len(runs.failures) + wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
