/* Search from a folder. Browsers start no worker for a file:// page, so that a hidden frame does its work. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.frame.addEventListener("load", () => this.load(new URL(address, location.href)), {once: true});
      document.body.append(this.frame);
    }

    load(address) {
      const inner = this.frame.contentWindow, script = inner.document.createElement("script");
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      script.addEventListener("load", () => {
        this.waiting.splice(0).forEach((data) => this.send(data));
        this.waiting = null;
      });
      script.src = address;
      inner.document.body.append(script);
    }

    send(data) {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
    }

    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.send(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
