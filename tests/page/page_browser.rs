//! The status page in a real browser: over literal boards, because what is to be seen has to be every state at once.
//!
//! In: a board, served as the daemon serves it. Out: what a person sees and can do, with a mouse and without, on a screen and
//! on a phone, with scripts and without; pictures of it lie in target/pictures.

pub(crate) mod axe;
pub(crate) mod geometry;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::board::{board_with_every_state, config_lines, many, many_syncs};
use crate::page_views::clusters::spread;
use moorline::api::SyncName;
use moorline::object::ObjectId;
use moorline::report::board::{
    LiveDifference, LiveObject, ObjectWriter, RedactedBody, StatusBoard, SyncCard,
};
use moorline::serve::{LiveRequest, StatusPage, serve_page};
use moorline_test_support::browser::Browser;
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// Time limit that the project sets itself, from a change to the screen.
const SCREEN_BAR: Duration = Duration::from_millis(500);

/// A page that is served.
struct Served {
    url: String,
    board: watch::Sender<Arc<StatusBoard>>,
    _end: watch::Sender<bool>,
    _runtime: Runtime,
}

fn served(board: StatusBoard) -> Served {
    let runtime = Runtime::new().unwrap();
    let (board, newest) = watch::channel(Arc::new(board));
    let (end, ending) = watch::channel(false);
    let (want, mut wanted) = mpsc::channel::<LiveRequest>(4);
    let known = newest.clone();
    runtime.spawn(async move {
        while let Some(wanted) = wanted.recv().await {
            let LiveRequest::Object(wanted) = wanted else { continue };
            let board = known.borrow().clone();
            let card = board.cards.get(&wanted.sync).unwrap();
            let desired = card.objects.wanted(&wanted.id).map(|object| object.body());
            let _ = wanted.answer.send(Ok(seen(&wanted.id, json!(desired.unwrap_or_default()))));
        }
    });
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(serve_page(listener, StatusPage::new(newest, want, ending, true), std::future::pending()));
    Served { url, board, _end: end, _runtime: runtime }
}

/// Returns the live form of an object: its desired one, with edits.
pub(crate) fn seen(id: &ObjectId, mut body: Value) -> LiveObject {
    let differs = |path: &str, live: Value, wanted: Value| LiveDifference {
        path: path.to_owned(),
        values: Some((Some(live), Some(wanted))),
    };
    body["metadata"]["uid"] = json!("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
    let differences = if id.kind() == "Deployment" {
        body["spec"]["replicas"] = json!(5);
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/web:debug");
        body["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
        body["status"] = json!({"replicas": 5, "observedGeneration": 7});
        vec![
            differs("spec.replicas", json!(5), json!(2)),
            LiveDifference { path: "spec.template.metadata.annotations.login".to_owned(), values: None },
            differs(
                "spec.template.spec.containers[name=web].image",
                json!("registry.example/web:debug"),
                json!("registry.example/web:1"),
            ),
        ]
    } else {
        body["data"]["nginx.conf"] = json!(config_lines(80));
        vec![differs("data[\"nginx.conf\"]", json!(config_lines(80)), json!(config_lines(8080)))]
    };
    LiveObject {
        live: Some(RedactedBody { body, omission: "" }),
        differences,
        writers: vec![ObjectWriter {
            manager: "kubectl-edit".into(),
            time: "2026-11-22T11:40:00Z".into(),
            subresource: String::new(),
        }],
    }
}

const SHOP: &str = "/syncs/ops/shop";
const WEB: &str = "/syncs/ops/shop/objects/apps/Deployment/shop/web";
const BANNER: &str = "/syncs/ops/shop/objects/-/ConfigMap/shop/banner";

/// Views of the console, each with the name of its picture.
const VIEWS: [(&str, &str); 12] = [
    ("all", "/"),
    ("clusters", "/clusters"),
    ("grouped", "/?group=label:team&sort=name&fav=ops/base,ops/shop"),
    ("sync", SHOP),
    ("timeline", "/syncs/ops/shop/timeline"),
    ("diff", "/syncs/ops/shop/diff"),
    ("plan", "/syncs/ops/shop/plan"),
    ("settings", "/syncs/ops/shop/settings"),
    ("unwell", "/syncs/ops/unwell"),
    ("object", WEB),
    ("banner", BANNER),
    ("nothing", "/x"),
];
/// Widths of a phone, a tablet and a screen, with the height.
const SIZES: [(&str, u32, u32); 3] = [("phone", 320, 740), ("tablet", 768, 1024), ("screen", 1280, 900)];

#[test]
fn every_view_is_whole_on_a_screen_and_on_a_phone_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(spread(board_with_every_state()));
    let mut faults = Vec::new();
    for (device, width, height) in SIZES {
        browser.size(width, height);
        for (name, path) in VIEWS {
            browser.dark(false);
            browser.go(&format!("{}{path}", served.url));
            for (light, is_dark) in [("light", false), ("dark", true)] {
                browser.dark(is_dark);
                let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
                assert!(wide <= u64::from(width), "{path} is {wide} wide on a {device}");
                let found = geometry::faults(&mut browser);
                faults.extend(
                    (!found.is_empty()).then(|| format!("{path} on a {device} in {light}:\n{found}")),
                );
                let page = browser.value("getComputedStyle(document.body).backgroundColor");
                let brightness: u64 = page
                    .as_str()
                    .unwrap()
                    .split(|char: char| !char.is_ascii_digit())
                    .filter_map(|number| number.parse::<u64>().ok())
                    .take(3)
                    .sum();
                assert_eq!(brightness < 300, is_dark, "{page}");
                assert_eq!(faint(&mut browser), "", "{path} in {light}");
                if device != "tablet" && (device == "screen" || !is_dark) {
                    browser.picture(&format!("{name}-{device}-{light}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let complaints = browser.complaints();
    // The page that is not there is asked for on purpose.
    let others: Vec<_> = complaints.iter().filter(|text| !text.contains("404")).collect();
    assert_eq!(others, Vec::<&String>::new());
    let foreign: Vec<_> = browser.asked().into_iter().filter(|url| !url.starts_with(&served.url)).collect();
    assert_eq!(foreign, Vec::<String>::new(), "nothing comes from elsewhere");
}

/// Texts that are hard to read: those with less contrast than WCAG 2.2 asks for (AA, 4.5 to 1).
fn faint(browser: &mut Browser) -> String {
    let script = r"(() => {
        const parts = (text) => { const all = text.match(/[\d.]+/g).map(Number); return all.length < 4 ? [...all, 1] : all; };
        const bright = (colour) => {
            const [r, g, b] = colour.slice(0, 3).map((part) => {
                const share = part / 255;
                return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const below = (element) => {
            for (let at = element; at; at = at.parentElement) {
                const colour = parts(getComputedStyle(at).backgroundColor);
                if (colour[3] > 0) return colour;
            }
            return [255, 255, 255, 1];
        };
        const faint = [];
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const element = walk.currentNode.parentElement;
            if (!walk.currentNode.textContent.trim() || element.closest('svg, .skip, .unseen, option')) continue;
            const [one, other] = [bright(parts(getComputedStyle(element).color)), bright(below(element))];
            const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
            if (ratio < 4.5) faint.push(`${walk.currentNode.textContent}: ${ratio.toFixed(2)}`);
        }
        return faint.join('; ');
    })()";
    browser.value(script).as_str().unwrap().to_owned()
}

/// Presses Tab until this is true of what has the focus.
fn tab_to(browser: &mut Browser, what: &str, is: &str) {
    for _ in 0..400 {
        browser.press("Tab");
        if browser.value(&format!("((it) => {is})(document.activeElement)")) == true {
            let seen = "(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== 'none' || document.activeElement.closest('svg') !== null; })()";
            assert_eq!(browser.value(seen), true, "the focus is to be seen: {what}");
            return;
        }
    }
    panic!("the Tab key does not come to {what}");
}

#[test]
fn the_keyboard_alone_is_enough() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(board_with_every_state());
    browser.go(&served.url);
    browser.press("Tab");
    assert_eq!(browser.value("document.activeElement.className"), "skip");
    browser.press("Enter");
    assert_eq!(browser.value("document.activeElement.id"), "main");
    // Every link, button and field comes in its turn.
    browser.go(&served.url);
    let all = "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')]";
    let count = browser.value(&format!("{all}.length")).as_u64().unwrap();
    browser.value("window.seen = new Set(); 0");
    for _ in 0..count {
        browser.press("Tab");
        browser.value("window.seen.add(document.activeElement); 0");
    }
    let missed = browser
        .value(&format!("{all}.filter((it) => !window.seen.has(it)).map((it) => it.outerHTML).join()"));
    assert_eq!(missed, "", "of {count}");
    // The filter.
    browser.go(&served.url);
    tab_to(&mut browser, "the filter", "it.id === 'q'");
    browser.types("resting");
    browser.press("Enter");
    browser.loaded();
    assert_eq!(browser.value("document.querySelectorAll('#rows tbody tr').length"), 1);
    tab_to(&mut browser, "the Sync", "it.getAttribute('href') === '/syncs/ops/resting'");
    browser.press("Enter");
    browser.loaded();
    assert_eq!(browser.value("location.pathname"), "/syncs/ops/resting");
    tab_to(&mut browser, "an object", "it.getAttribute('href')?.includes('/objects/')");
    browser.press("Enter");
    browser.loaded();
    assert!(browser.value("location.pathname").as_str().unwrap().contains("/objects/"));
    tab_to(&mut browser, "the way back", "it.getAttribute('href') === '/'");
    browser.press("Enter");
    browser.loaded();
    assert_eq!(browser.value("location.pathname"), "/");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn it_works_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(board_with_every_state());
    browser.scripts(false);
    browser.go(&served.url);
    assert_eq!(browser.value("document.querySelector('h1').innerText.includes('3 of 7 Syncs')"), true);
    tab_to(&mut browser, "the filter", "it.id === 'q'");
    browser.types("shop");
    browser.press("Enter");
    browser.loaded();
    assert_eq!(browser.value("location.search.includes('q=shop')"), true);
    assert_eq!(browser.value("document.querySelectorAll('#rows tbody tr').length"), 1);
    browser.go(&format!("{}{SHOP}", served.url));
    assert_eq!(browser.value("document.querySelectorAll('.objects tbody tr').length"), 16);
    assert!(!browser.asked().iter().any(|url| url.contains("/events")), "nothing listens");
}

#[test]
fn a_whole_object_is_one_unified_diff_that_wraps() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(board_with_every_state());
    for width in [1280, 320] {
        browser.size(width, 900);
        browser.go(&format!("{}{BANNER}", served.url));
        let text = browser.value("document.querySelector('.diff').innerText");
        let lines: Vec<&str> = text.as_str().unwrap().lines().collect();
        let (folded, shown): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.contains(" lines "));
        assert_eq!((folded.len(), shown.len()), (2, 8), "{lines:?}");
        let changed = shown.iter().position(|line| line.starts_with('-')).unwrap();
        for (line, start, end) in [
            (shown[changed], "-      location /p9 {", ":80; }"),
            (shown[changed + 1], "+      location /p9 {", ":8080; }"),
        ] {
            assert!(line.starts_with(start) && line.ends_with(end), "{line}");
        }
        let fits = "((it) => it.scrollWidth <= it.clientWidth)(document.querySelector('.diff'))";
        assert_eq!(browser.value(fits), true, "lines wrap at {width}");
        let colour =
            |of: &str| format!("getComputedStyle(document.querySelector('.diff {of}')).backgroundColor");
        let (removed, added) = (browser.value(&colour("del")), browser.value(&colour("ins")));
        assert!(removed != added && removed != browser.value(&colour("span")), "{removed} {added}");
    }
    browser.go(&format!("{}{WEB}", served.url));
    let text = browser.value("document.querySelector('#difference').innerText");
    assert!(text.as_str().unwrap().contains("spec.template.metadata.annotations.login"), "{text}");
    let colour = |of: &str| format!("getComputedStyle(document.querySelector('.diff {of}')).color");
    assert_ne!(
        browser.value(&colour(".server")),
        browser.value(&colour("span:not(.server)")),
        "it is dimmed"
    );
    // A fold closes, and the search opens it again.
    let fold = "[...document.querySelectorAll('#live-object summary')].find((it) => it.innerText.startsWith('spec:'))";
    browser.value(&format!("{fold}.click(); document.getElementById('find').focus(); 0"));
    assert_eq!(browser.value(&format!("{fold}.parentElement.open")), false);
    browser.types("web:debug");
    browser.until("it is found", "document.getElementById('found').textContent === '1 found'");
    assert_eq!(browser.value(&format!("{fold}.parentElement.open")), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_changes_is_shown_by_itself_and_nothing_is_lost_by_it() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(board_with_every_state());
    browser.go(&format!("{}{SHOP}", served.url));
    browser.until("it listens", "performance.getEntriesByType('resource').length > 1");
    browser.value("document.getElementById('kinds').open = true; document.querySelector('#kinds a').focus(); window.mark = 1; 0");
    let focused = browser.value("document.activeElement.getAttribute('href')");
    // Each right after the one before, which a limit of events a second would delay.
    let (well, unwell) = (("base", "Synced"), ("unwell", "Degraded"));
    let mut times = [well, unwell, well, unwell, well].map(|(other, state)| {
        let begun = Instant::now();
        served.board.send_modify(|board| {
            let board = Arc::make_mut(board);
            let card = (**board.card("ops", other).unwrap()).clone();
            board.update_card(SyncCard { name: SyncName::new("ops", "shop"), ..card });
        });
        let shown = format!("document.querySelector('.verdict .badge').innerText.includes('{state}')");
        browser.until("the page says so", &shown);
        begun.elapsed()
    });
    println!("changes were on the screen after {times:?}");
    times.sort_unstable();
    assert!(times[2] < under_load(SCREEN_BAR), "{times:?}");
    let node = "document.querySelector('#order a[aria-label=\"ops/shop: Synced\"]') !== null";
    browser.until("its state in the graph", node);
    assert_eq!(browser.value("window.mark"), 1, "it was not loaded anew");
    assert_eq!(browser.value("document.getElementById('kinds').open"), true);
    assert_eq!(browser.value("document.activeElement.getAttribute('href')"), focused);
    // A filter follows what is typed, and a favourite stays in the browser.
    browser.go(&served.url);
    browser.value("document.getElementById('q').focus(); window.mark = 2; 0");
    browser.types("unw");
    browser.until("it is filtered", "document.querySelectorAll('#rows tr[data-sync]').length === 1");
    assert_eq!(browser.value("location.search + window.mark + document.activeElement.id"), "?q=unw2q");
    browser.value("document.querySelector('#rows .star').click(); 0");
    browser.until("it is a favourite", "document.querySelectorAll('#favourites [data-sync]').length === 1");
    browser.go(&served.url);
    let first = "document.querySelector('#favourites .star')?.getAttribute('aria-label')";
    browser.until("it is kept", &format!("{first} === 'Favourite ops/unwell'"));
    let narrow = "(() => { const svg = document.querySelector('.picture svg'); svg.dispatchEvent(new WheelEvent('wheel', \
        { ctrlKey: true, deltaY: 1, bubbles: true, cancelable: true })); return Number(svg.getAttribute('width')); })()";
    assert!(browser.value(narrow).as_u64().unwrap() < 756);
    browser.go(&format!("{}{SHOP}", served.url));
    browser.until("it listens", "performance.getEntriesByType('resource').length > 1");
    served.board.send_modify(|board| {
        Arc::make_mut(board).remove(&moorline::api::SyncName::new("ops", "shop"));
    });
    browser.until("it is gone", "document.querySelector('h1').innerText === 'Not found'");
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|text| text.contains("404")), "{complaints:?}");
}

#[test]
fn ten_thousand_objects_and_a_thousand_syncs_stay_usable() {
    let Some(mut browser) = Browser::start() else { return };
    let served = served(many(10_000));
    browser.go(&format!("{}/syncs/ops/many", served.url));
    let paint = browser.value("Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)");
    println!("a page of 10,000 objects is there within {paint} ms");
    assert!(paint.as_u64().unwrap() < 3_000, "{paint} ms");
    assert!(browser.value("document.querySelectorAll('*').length").as_u64().unwrap() < 3_000);
    browser.picture("many-screen-light");
    browser.size(320, 740);
    browser.go(&format!("{}/syncs/ops/many?page=50", served.url));
    assert_eq!(geometry::faults(&mut browser), "");
    browser.picture("many-phone-light");
    served.board.send_replace(Arc::new(many_syncs(1000)));
    browser.go(&served.url);
    assert_eq!(geometry::faults(&mut browser), "");
    let high = browser.value("document.getElementById('syncs').offsetHeight").as_u64().unwrap();
    println!("the first page of 1,000 Syncs is {high} px high on a phone");
    assert!(high < 7_000, "{high} px");
    browser.picture("many-syncs-phone-light");
}
