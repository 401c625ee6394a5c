"""Random instructions of every form that the interpreter knows, right and wrong ones."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ptxgen.errors import PtxgenError
from ptxgen.interp.text.forms import CLASSES, Form, Slot, forms, matching_forms
from ptxgen.runtime import Parameters
from ptxgen.runtime.cpu import CpuDevice

TYPES = ["pred", "b8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "f16x2", "b64"]
TYPES += ["u64", "s64", "f64"]
TARGETS = ("sm_80", "sm_90", "sm_90a")
EACH = 4
"""Registers of each type."""

HEAD = """.version 8.7
.target {target}
.address_size 64
.global .align 16 .b8 gl[1024];
.const .align 16 .b8 co[64];
.shared .align 128 .b8 sh[1024];
"""
REGISTERS = "".join(f".reg .{t} %{t}_<{EACH}>; " for t in TYPES)
LINES = 2
"""Lines of a kernel: its head, and the instruction."""


def kernel(number: int, text: str, before: str = "") -> str:
    """A kernel with one instruction, on the last of its LINES lines but for ``before``."""
    return f".visible .entry k{number}(.param .u64 p) {{ {REGISTERS}{before}\n{text} L: ret; }}\n"


def _prelude() -> str:
    """All registers get a value: u64_0, b64_0 a global address, u32_0, b32_0 a shared one."""
    said = ["ld.param.u64 %u64_0, [p]; mov.b64 %b64_0, %u64_0; mov.u32 %u32_0, sh;"]
    said.append("mov.b32 %b32_0, %u32_0; mov.u32 %u32_1, %tid.x;")
    said.append(
        "mad.lo.u32 %u32_1, %u32_1, 8, %u32_0; st.shared.v2.b32 [%u32_1], {%u32_0, %u32_1};"
    )
    said.append("bar.sync 0;")
    for type in TYPES:
        for i in range(EACH):
            name, value = f"%{type}_{i}", 16 * i + 3
            if type == "pred":
                said.append(f"setp.eq.u32 {name}, %u32_0, {i};")
            elif type[0] in "bus" and type != "b8" and not (i == 0 and type[1:] in ("32", "64")):
                said.append(f"mov.{type} {name}, {value};")
            elif type in ("f32", "f64"):
                said.append(f"mov.{type} {name}, {value}.5;")
            elif type == "f16":
                said.append(f"mov.b16 {name}, {15000 + value};")
            elif type == "f16x2":
                said.append(f"mov.b32 {name}, {1000000000 + value};")
    return " ".join(said) + " mov.s32 %s32_0, 1; mov.s64 %s64_0, 1;"


PRELUDE = _prelude()


@dataclass(frozen=True)
class Draw:
    """An instruction for a target."""

    text: str
    target: str


class Drawer:
    """Draws from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.opcodes = sorted(forms())
        self.modifiers = sorted({m for line in CLASSES.values() for m in line.split()})

    def draw(self) -> Draw:
        """The next instruction; one in two has something about it that may be wrong."""
        pick = self.random
        form = pick.choice(forms()[pick.choice(self.opcodes)])
        name = self.name(form)
        groups = dict(matching_forms(name)[0][1]) if matching_forms(name) else {}
        count = pick.randint(form.required, len(form.operands))
        operands = [self.operand(pick.choice(s), groups) for s in form.operands[:count]]
        if pick.random() < 0.5:
            name, operands = self.spoiled(name, operands)
        guard = pick.choice(["", "", "", "@%pred_1 ", "@!%pred_2 "])
        text = f"{guard}{name} {', '.join(operands)}".rstrip() + ";"
        return Draw(text, pick.choices(TARGETS, (1, 1, 4))[0])

    def name(self, form: Form) -> str:
        """A name that fits the form."""
        pick = self.random

        def of_class(match: re.Match[str]) -> str:
            name, colon, what = match[1].partition(":")
            what = what if colon else name
            return what if what[0] == "(" else f"({CLASSES.get(what, what).replace(' ', '|')})"

        text = re.sub(r"<([^<>]*)>", of_class, form.name)
        while match := re.search(r"\(([^()]*)\)([?*]?)", text):
            chosen = pick.choice(match[1].split("|"))
            if match[2] and pick.random() < (0.6 if match[2] == "?" else 0.85):
                chosen = ""
            text = text[: match.start()] + chosen + text[match.end() :]
        return text

    def operand(self, slot: Slot, groups: dict[str, str | None]) -> str:
        """Something that fits, mostly."""
        pick = self.random
        if slot.label:
            return "L"
        if slot.choices and (not slot.type or pick.random() < 0.3):
            if slot.choices.endswith("*"):
                return pick.choice(["32", "64", "96", "128"])
            low, dots, high = slot.choices.partition("..")
            return (
                str(pick.randint(int(low), int(high or 9))) if dots else pick.choice(low.split("/"))
            )
        if slot.space and not slot.type:
            name, _, variables = slot.space.partition("/")
            space = (groups.get("s") if name == "s" else name) or variables or "generic"
            rank = int((groups.get(slot.coordinates) or "0")[0])
            axes = f", {{{', '.join('%s32_0' for _ in range(rank))}}}" if rank else ""
            return self.address(space.partition("::")[0], axes)
        if not slot.type:
            return "_"
        type = groups.get(slot.type, slot.type) or "u32"
        if slot.type[0] == "2" and slot.type[1:] in groups:
            narrow = groups[slot.type[1:]] or "u16"
            type = f"{narrow[0]}{2 * int(narrow[1:])}"
        if slot.count:
            name, _, part = slot.count.partition("/")
            if name == "v":
                vector = groups.get("v")
                if vector is None:
                    return self.value(slot, type)
                count = int(vector[1:])
            else:
                count = int(groups.get(name) or (name if name.isdigit() else 8)) // int(part or 1)
            return "{" + ", ".join(self.value(slot, type) for _ in range(count)) + "}"
        if slot.second and (slot.second == "&" or pick.random() < 0.4):
            return f"{self.value(slot, type)}|{self.register('pred')}"
        return self.value(slot, type)

    def register(self, type: str) -> str:
        return f"%{type}_{self.random.randrange(EACH)}"

    def value(self, slot: Slot, type: str) -> str:
        pick = self.random
        if slot.sink and pick.random() < 0.2:
            return "_"
        chance = pick.random()
        if slot.constant and chance < 0.2:
            return self.constant(type)
        if slot.special and chance < 0.4:
            return pick.choice(["%tid.x", "%laneid", "%ctaid.y", "%ntid.z", "%lanemask_lt"])
        if slot.symbol and chance < 0.6:
            return pick.choice(["gl", "sh", "p", "sh+4", "co"])
        bits = re.sub(r"\D", "", type.removesuffix("x2")) or "32"
        alike = [type] if type in TYPES else ["b16" if type == "bf16" else "b32"]
        if type.removesuffix("x2") == type and type[0] in "bus" and type != "bf16":
            alike += [t for t in ("b" + bits, "u" + bits, "s" + bits) if t in TYPES]
        if slot.wider and chance > 0.8:
            alike += ["b64", "u64", "b32"]
        return self.register(pick.choice(alike))

    def constant(self, type: str) -> str:
        pick = self.random
        if type in ("f32", "f64") and pick.random() < 0.9:
            return pick.choice(["1.5", "0d3FF8000000000000", "0f3F800000"])
        return pick.choice(["0", "1", "-1", "7", "32", "65535", "0x7FFFFFFF", "4294967295"])

    def address(self, space: str, axes: str) -> str:
        near = {"shared": ["%u32_0", "%b32_0", "sh", "sh"], "param": ["p"], "const": ["co"]}
        base = self.random.choice(near.get(space, ["%u64_0", "%b64_0", "gl"]))
        if axes:
            return f"[{base}{axes}]"
        return f"[{base}{self.random.choice(['', '', '+8', '+16', '+3'])}]"

    def anything(self) -> str:
        """An operand of any kind."""
        pick = self.random
        kinds = [
            self.register(pick.choice(TYPES)),
            self.register(pick.choice(TYPES)),
            self.constant(pick.choice(TYPES)),
            "%tid.x",
            pick.choice(["gl", "sh", "p", "co", "sh+4"]),
            self.address(pick.choice(["shared", "global", "param", "const"]), ""),
            "{"
            + ", ".join(self.register(pick.choice(TYPES)) for _ in range(pick.randint(1, 4)))
            + "}",
            f"{self.register(pick.choice(TYPES))}|{self.register('pred')}",
            "_",
            f"!{self.register('pred')}",
            "[%u64_0, {%s32_0, %s32_1}]",
        ]
        return pick.choice(kinds)

    def spoiled(self, name: str, operands: list[str]) -> tuple[str, list[str]]:
        """Changes one thing of an instruction; returns its name and operands."""
        pick, operands = self.random, list(operands)
        what = pick.random()
        if what < 0.5 and operands:
            operands[pick.randrange(len(operands))] = self.anything()
        elif what < 0.6 and operands:
            operands.pop(pick.randrange(len(operands)))
        elif what < 0.7:
            operands.insert(pick.randint(0, len(operands)), self.anything())
        else:
            parts = name.split(".")
            at = pick.randrange(len(parts))
            if what < 0.8 and at:
                parts.pop(at)
            elif what < 0.9 and at:
                parts[at] = pick.choice(self.modifiers)
            else:
                parts.insert(at + 1, pick.choice(self.modifiers))
            name = ".".join(parts)
        return name, operands


def load(draw: Draw, device: CpuDevice) -> str | None:
    """Returns the CPU device's error for an instruction, None if it accepts it."""
    text = HEAD.format(target=draw.target) + kernel(0, draw.text, PRELUDE)
    try:
        device.load(text.encode(), "k0")
    except PtxgenError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def execute(draw: Draw, device: CpuDevice) -> str | None:
    """The fault that carrying it out ends in, None if it ends well; other exceptions go on."""
    text = HEAD.format(target=draw.target) + kernel(0, draw.text, PRELUDE)
    function = device.load(text.encode(), "k0")
    pointer = device.alloc(4096)
    try:
        device.memset(pointer, 0, 4096)
        packed = Parameters(pointer.to_bytes(8, "little"), (0,))
        launch = device.prepare(function, (1, 1, 1), (128, 1, 1), packed, 1, "a draw")
        launch.fire(0, pointer)
    except PtxgenError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        device.free(pointer)
    return None


def draws(seed: int, count: int) -> Sequence[Draw]:
    """The first ``count`` draws of a seed."""
    drawer = Drawer(seed)
    return [drawer.draw() for _ in range(count)]
