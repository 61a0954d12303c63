/* Search shows an excerpt of each page that it finds, which it fetches. A browser fetches nothing over file://, so there
 * the texts come from page_texts.js, which is written beside this file. */
if (window.location.protocol === "file:") {
  const fetchOther = window.fetch;
  window.fetch = (url) => {
    const name = new URL(url, window.location.href).pathname;
    const page = Object.keys(PAGE_TEXTS).find((known) => name.endsWith("/" + known));
    if (page === undefined) return fetchOther(url);
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    main.textContent = PAGE_TEXTS[page];
    return Promise.resolve(new Response(main.outerHTML));
  };
}
