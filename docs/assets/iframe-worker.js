/* Search in pages that are opened as files: browsers start no Worker there, so an invisible frame
   runs the worker's script. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html>"
      this.inside = new Promise((ready, failed) => {
        frame.onload = () => {
          const inside = frame.contentWindow
          inside.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }))
          const script = inside.document.createElement("script")
          script.src = url
          script.onload = () => ready(inside)
          script.onerror = failed
          inside.document.head.append(script)
        }
      })
      document.body.append(frame)
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }
  }
}
