//! The geometry of a page: what overlaps, what is cut off, and which columns are not straight.
//!
//! In: a page in a browser. Out: one line for each fault, with the texts that it concerns.

use moorline_test_support::browser::Browser;

/// Parts that scroll by themselves: what they hide can be reached.
const SCROLLERS: &str = ".picture, .diff, .yaml, pre";

/// Faults of the page that the browser shows.
pub(crate) fn faults(browser: &mut Browser) -> String {
    let script = SCRIPT.replace("SCROLLERS", SCROLLERS);
    browser.value(&script).as_str().unwrap().to_owned()
}

const SCRIPT: &str = r"(() => {
    const faults = [];
    const wide = document.documentElement.clientWidth;
    const say = (what, ...boxes) => { if (faults.length < 20) faults.push(what + ': ' + boxes.map((box) => box.name).join(' | ')); };
    const cut = (rect, element) => {
        const scroller = element.closest('SCROLLERS');
        if (!scroller) return rect;
        const edge = scroller.getBoundingClientRect();
        const [left, top] = [Math.max(rect.left, edge.left), Math.max(rect.top, edge.top)];
        const [right, bottom] = [Math.min(rect.right, edge.right), Math.min(rect.bottom, edge.bottom)];
        return { left, top, right, bottom, width: right - left, height: bottom - top };
    };
    // Every line of text, and every control.
    const boxes = [];
    const add = (rect, element, name, node) => {
        const seen = cut(rect, element);
        if (seen.width > 1 && seen.height > 1) boxes.push({ rect: seen, element, name: name.trim().slice(0, 40), node });
    };
    const hidden = '.unseen, .skip, [hidden], option';
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const [node, element] = [walk.currentNode, walk.currentNode.parentElement];
        if (!node.textContent.trim() || element.closest(hidden) || !element.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const lines = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
        if (element.closest('.badge, .tabs, thead, button') && lines.size > node.textContent.trim().split(/\s+/).length) {
            say('a word is broken', { name: node.textContent.trim() });
        }
        for (const rect of range.getClientRects()) add(rect, element, node.textContent, node);
    }
    for (const element of document.querySelectorAll('input, select, button')) {
        if (!element.closest(hidden) && element.checkVisibility()) add(element.getBoundingClientRect(), element, element.id || element.className, element);
    }
    const holders = 'td, th, li, dd, dt, p, h1, h2, h3, label, summary, .badge, legend';
    for (const box of boxes) {
        const { rect, element } = box;
        if (rect.left < -1 || rect.right > wide + 1) say('beyond the edge', box);
        if (element.closest('SCROLLERS, svg')) continue;
        const holder = element.closest(holders);
        const edge = holder?.getBoundingClientRect();
        if (edge && (rect.left < edge.left - 1 || rect.right > edge.right + 1)) say('beyond its ' + holder.tagName, box);
        for (let up = element; up; up = up.parentElement) {
            const style = getComputedStyle(up);
            if (style.overflowX !== 'visible' && up !== document.documentElement && up !== document.body) {
                const frame = up.getBoundingClientRect();
                if (rect.right > frame.right + 1 || rect.bottom > frame.bottom + 1) say('cut off', box);
            }
        }
    }
    boxes.sort((one, other) => one.rect.top - other.rect.top);
    boxes.forEach((one, at) => {
        for (const other of boxes.slice(at + 1)) {
            if (other.rect.top > one.rect.bottom - 4) break;
            if (one.node === other.node || one.element.contains(other.node) && one.node === one.element) continue;
            if (other.node === other.element && other.element.contains(one.node)) continue;
            if (one.node === one.element && one.element.contains(other.element)) continue;
            const width = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
            const height = Math.min(one.rect.bottom, other.rect.bottom) - other.rect.top;
            if (width > 1 && height > 4) say('over each other', one, other);
        }
    });
    // Columns: all cells of a place begin at the same line.
    const straight = (what, elements) => {
        const lefts = [...elements].filter((it) => it.offsetParent).map((it) => Math.round(it.getBoundingClientRect().left));
        const odd = lefts.find((left) => Math.abs(left - lefts[0]) > 1);
        if (odd !== undefined) faults.push('not straight: ' + what + ' ' + lefts.join());
    };
    const columns = (what, tables) => {
        const rows = tables.flatMap((table) => [...table.rows]).filter((row) => ![...row.cells].some((cell) => cell.colSpan > 1) && !row.closest('.unseen'));
        const most = Math.max(0, ...rows.map((row) => row.cells.length));
        for (let at = 0; at < most; at += 1) straight(what + ' column ' + at, rows.filter((row) => row.cells[at]).map((row) => row.cells[at]));
    };
    for (const kind of ['objects', 'syncs']) columns(kind, [...document.querySelectorAll('table.' + kind)].filter((it) => getComputedStyle(it).display === 'table'));
    for (const table of document.querySelectorAll('table:not(.objects, .syncs)')) if (getComputedStyle(table).display === 'table') columns('table', [table]);
    for (const part of ['.revisions dt', '.revisions dd', '.axis .when', '.axis .what', '.problems li', '.words dt', '.words dd']) straight(part, document.querySelectorAll(part));
    for (const row of document.querySelectorAll('.syncs tr[data-sync]')) if (getComputedStyle(row).display === 'grid') straight('card', [row.querySelector('th'), row.querySelector('[data-label=Objects]')]);
    return faults.join('\n');
})()";
