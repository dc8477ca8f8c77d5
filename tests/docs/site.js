// Load each page in a frame of 360 pixels, and send what is in it to the test.
const frame = document.querySelector("iframe");

async function load(url) {
  frame.src = url;
  await new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  return frame.contentDocument;
}

function measure(page) {
  const all = (selector) => [...page.querySelectorAll(selector)];
  const style = (element) => frame.contentWindow.getComputedStyle(element);
  const scrolls = (element) =>
    element.closest("article") && (/auto|scroll/.test(style(element).overflowX) || scrolls(element.parentElement));
  return {
    wide: all("article *")
      .filter((element) => element.getBoundingClientRect().right > frame.clientWidth && !scrolls(element))
      .map((element) => element.tagName + ": " + element.textContent.slice(0, 60)),
    font: parseFloat(style(page.querySelector("article p, article h1")).fontSize),
    ids: all("[id]").map((element) => element.id),
    links: all("a[href]").map((link) => link.href),
    images: all("article img").map((image) => [image.src, image.naturalWidth, image.width / image.naturalWidth]),
    empty: all("article table").filter((table) => !table.querySelector("tbody td")?.closest("tbody").innerText.trim())
      .length,
    links_in_navigation: all(".sidebar-tree a").length,
  };
}

async function search(words) {
  const page = await load("search.html?q=" + encodeURIComponent(words));
  for (let waited = 0; waited < 100; waited++) {
    const found = [...page.querySelectorAll("#search-results li a")].map((link) => link.href);
    if (found.length) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return [];
}

// Texts that reach beyond the box that they begin in, and texts that overlap another one or reach out of the picture.
async function misplaced(name) {
  const answer = await fetch(name);
  const host = document.createElement("div");
  host.innerHTML = await answer.text();
  document.body.append(host);
  const inside = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const box = (element) => element.getBoundingClientRect();
  const texts = [...host.querySelectorAll("text")];
  const boxes = [...host.querySelectorAll("rect")].map(box);
  const wrong = texts.filter((text) => {
    const at = box(text);
    const middle = { left: (at.left + at.right) / 2, right: (at.left + at.right) / 2, top: at.top, bottom: at.bottom };
    if (boxes.some((each) => inside(middle, each) && !inside(at, each))) return true;
    return texts.some((other) => other !== text && overlap(at, box(other)));
  });
  host.remove();
  return wrong.map((text) => text.textContent);
}

async function main() {
  const { pages, words, picture } = await (await fetch("site.json")).json();
  const report = { pages: {}, found: [], misplaced: await misplaced(picture) };
  for (const page of pages) report.pages[page] = measure(await load(page));
  report.found = await search(words);
  return report;
}

main()
  .catch((error) => ({ error: String(error.stack) }))
  .then((report) => fetch("report", { method: "POST", body: JSON.stringify(report) }));
