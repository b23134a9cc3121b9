// Unpacks the script and the data, and starts. Everything else is in the packed script.
(async () => {
  const say = (text) => {
    const notice = document.getElementById("notice");
    notice.textContent = text;
    notice.hidden = false;
  };
  if (!("DecompressionStream" in window)) {
    say("This browser cannot unpack the plots: it has no DecompressionStream. Use Chrome or Edge 80, " +
      "Firefox 113, Safari 16.4, or a later version. All tables and sentences are here.");
    return;
  }
  const unpack = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  try {
    const [code, data] = await Promise.all([unpack("code"), unpack("data")]);
    const script = document.createElement("script");
    script.textContent = code;
    document.head.append(script);
    window.regatta.show(null, JSON.parse(data));
  } catch (error) {
    say(`The plots could not be drawn (${error}). All tables and sentences are here.`);
    throw error;
  }
})();
