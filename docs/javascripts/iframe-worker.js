// The theme searches in a Worker, which browsers refuse to start from file://. There an iframe, which
// shares this page's origin, runs the worker's script instead.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.document.write("<body>"); // or Firefox replaces the document later
      this.scope.document.close();
      window.addEventListener("message", (event) => {
        if (event.source === this.scope)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      this.loaded = new Promise((resolve) => {
        this.scope.postMessage = (data) =>
          window.dispatchEvent(new MessageEvent("message", { data, source: this.scope }));
        this.scope.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
        this.load(url).then(resolve);
      });
    }
    load(url) {
      const script = this.scope.document.createElement("script");
      script.src = url;
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
        this.scope.document.body.append(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.scope.frameElement.remove();
    }
  };
