// In the page's own world, before its scripts: what a page asks the browser's user for. The browser
// would refuse it at once, as nobody sees its questions. A call waits until the question is answered,
// and is then the browser's own. A picker of files is a field for files, which can be given one.
(() => {
  const tell = globalThis.gyrusAsks;
  delete globalThis.gyrusAsks;
  const origin = self.origin;
  const wrap = (owner, name, apply) => {
    if (typeof owner?.[name] === "function") owner[name] = new Proxy(owner[name], { apply });
  };
  const query = navigator.permissions?.query.bind(navigator.permissions);
  if (tell && query) {
    const decided = async (name) => {
      const status = await query({ name });
      if (status.state !== "prompt") return;
      tell(JSON.stringify({ asks: name, origin }));
      await new Promise((done) => status.addEventListener("change", done, { once: true }));
    };
    const later = (name) => (native, self, given) => decided(name).then(() => Reflect.apply(native, self, given));
    const position = globalThis.Geolocation?.prototype;
    wrap(position, "getCurrentPosition", (...call) => void later("geolocation")(...call));
    // Watches have numbers of their own until the browser has given one.
    const watches = new Map();
    wrap(position, "watchPosition", (...call) => {
      const number = watches.size + 1e6;
      watches.set(number, later("geolocation")(...call));
      return number;
    });
    wrap(position, "clearWatch", (native, self, [number]) => {
      Promise.resolve(watches.get(number)).then((own) => Reflect.apply(native, self, [own ?? number]));
    });
    wrap(globalThis.Notification, "requestPermission", later("notifications"));
    for (const name of ["read", "readText"]) wrap(globalThis.Clipboard?.prototype, name, later("clipboard-read"));
  }

  const folder = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(crypto.randomUUID(), { create: true });
  const newFile = async (name) => (await folder()).getFileHandle(name, { create: true });
  wrap(globalThis, "showOpenFilePicker", async (native, self, [options]) => {
    const field = document.createElement("input");
    Object.assign(field, { type: "file", multiple: !!options?.multiple });
    const chosen = new Promise((done, fail) => {
      field.addEventListener("change", done);
      field.addEventListener("cancel", () => fail(new DOMException("The user aborted a request.", "AbortError")));
    });
    field.click();
    await chosen;
    return Promise.all([...field.files].map(async (file) => {
      const handle = await newFile(file.name);
      await file.stream().pipeTo(await handle.createWritable());
      return handle;
    }));
  });
  // What is saved is a download, each time that it is written.
  if (globalThis.FileSystemObserver) wrap(globalThis, "showSaveFilePicker", async (native, self, [options]) => {
    const handle = await newFile(options?.suggestedName || "download");
    const observer = new FileSystemObserver(async (changes) => {
      if (!changes.some((change) => change.type === "modified")) return;
      const link = document.createElement("a");
      Object.assign(link, { href: URL.createObjectURL(await handle.getFile()), download: handle.name });
      link.click();
    });
    await observer.observe(handle);
    return handle;
  });
})();
