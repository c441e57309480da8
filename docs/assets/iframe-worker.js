// The theme searches in a Worker, and a browser starts none of a page that was opened from a disk. There the same script runs
// in a hidden frame, which is given what it uses of a Worker: messages in, messages out. (Its name keeps the theme from
// fetching such a script from elsewhere: the plugin "offline" looks for it.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.ready = new Promise(done => {
        const begin = () => {
          document.body.append(frame)
          this.inside = frame.contentWindow
          this.inside.postMessage = data => this.told(data)
          const script = frame.contentDocument.createElement("script")
          script.src = url
          script.onload = done
          frame.contentDocument.body.append(script)
        }
        if (document.body) begin()
        else addEventListener("DOMContentLoaded", begin)
      })
      this.frame = frame
    }

    told(data) {
      const event = new MessageEvent("message", {data})
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
