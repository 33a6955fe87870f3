"""The dashboard in a browser: what is drawn, on a desk and on a phone. Needs Chromium on the PATH, which pip does not bring.

With SHOAL_SCREENSHOTS=FOLDER it leaves pictures there.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import WATCHDOG_S, wait_for

import shoal

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
SMALL = {
    "network": {"hidden": [32]},
    "learner": {"batch_size": 32},
    "replay": {"min_size": 200, "capacity": 20_000, "samples_per_insert": 2.0},
    "run": {"stop_env_steps": 1_000_000_000, "stop_eval_return": "none", "metrics_interval_s": 0.2},
    "evaluator": {"episodes": 4, "interval_ms": 200},
    "visualizer": {"enabled": True, "pictures_per_s": 30, "video_interval_s": 1.0},
    "machine": {"affinity": False},
}
# How many pixels of each chart are not transparent: 0 is a chart that shows nothing.
INK = """() => [...document.querySelectorAll('main:not([hidden]) canvas')].map((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let ink = 0;
  for (let index = 3; index < pixels.length; index += 4) ink += pixels[index] > 0;
  return ink;
})"""

# Adds so many rows: whether the newest is there after each of them, how many rows are kept, and whether a page that was
# opened in between has the same.
MANY_ROWS = """async (count) => {
  const { Columns } = await import('./columns.js');
  const columns = new Columns({});
  let opened = null;
  let hasNewest = true;
  for (let step = 1; step <= count; step += 1) {
    const row = { env_steps: step, loss: step % 3 };
    columns.push(row);
    opened?.push(row);
    if (step === Math.floor(count / 2) + 1) {
      const { all, rowsSoFar, stride, newestIsPassing } = columns;
      const sent = { columns: all, rows_so_far: rowsSoFar, stride, newest_is_passing: newestIsPassing };
      opened = new Columns(structuredClone(sent));
    }
    hasNewest &&= columns.last('env_steps') === step && columns.last('loss') === step % 3;
  }
  return [hasNewest, columns.length, JSON.stringify(opened.all) === JSON.stringify(columns.all)];
}"""

# The rates, all different ones, of a run of so many seconds that makes 200 updates in every other second.
RATES_OF_A_LONG_RUN = """async (count) => {
  const { Columns } = await import('./columns.js');
  const columns = new Columns({});
  for (let second = 1; second <= count; second += 1) {
    columns.push({ env_steps: second, wall_s: second, updates: 200 * Math.floor(second / 2) });
  }
  return [columns.length, ...new Set(columns.rates('updates'))];
}"""

# Adds so many evaluations: how many routine ones and how many confirmations are kept.
MANY_EVALUATIONS = """async (count) => {
  const { joined } = await import('./columns.js');
  let evaluations = [];
  for (let step = 1; step <= count; step += 1) {
    evaluations = joined(evaluations, [{ kind: step % 1000 ? 'routine' : 'confirmation', env_steps: step }]);
  }
  const confirmations = evaluations.filter(({ kind }) => kind === 'confirmation').length;
  return [evaluations.length - confirmations, confirmations];
}"""

# Of which steps evaluations are kept if a run is evaluated at these steps, confirmed at the second last of them, and
# goes on from a checkpoint before the last.
REPEATED = """async (steps) => {
  const { joined } = await import('./columns.js');
  const routine = steps.map((step) => ({ kind: 'routine', env_steps: step }));
  const confirmation = { kind: 'confirmation', env_steps: steps.at(-2) };
  return joined(routine.slice(0, -1), [confirmation, routine.at(-1)]).map(({ env_steps }) => env_steps);
}"""

# Selects the name of a learner, as a reader would, and remembers its row and other nodes that show numbers.
LEARNER = "[...document.querySelectorAll('#processes tbody tr')].find((row) => row.textContent.startsWith('learner'))"
HOLD = f"""() => {{
  const row = {LEARNER};
  const name = row.cells[0];
  getSelection().selectAllChildren(name);
  const nodes = [row, ...row.cells, row.querySelector('.split i'), ...document.querySelectorAll('#replay dd, .tile b')];
  window.held = {{ row, nodes, touched: 0 }};
  const touch = (records) => (window.held.touched += records.length);
  const whatever = {{ subtree: true, childList: true, characterData: true, attributes: true }};
  new MutationObserver(touch).observe(name, whatever);
  return [name.textContent, row.cells[6].textContent];
}}"""
# Whether the nodes of older events stay, also that of an event that is explained later.
EVENTS = """async () => {
  const { events } = await import('./panels.js');
  const list = document.createElement('ol');
  const lines = ['2026-01-01 first', '2026-01-02 second'];
  events(list, lines);
  const [second, first] = list.children;
  events(list, [...lines, '  explained', '2026-01-03 third']);
  return list.children[1] === second && list.children[2] === first && second.textContent.endsWith('explained');
}"""
# How the moment of an event is shown, and a text in its place that is no moment.
MOMENTS = """async () => {
  const { events } = await import('./panels.js');
  const list = document.createElement('ol');
  events(list, ['2026-01-01T12:00:00.123Z began', '2026-99-99T12:00:00.123Z no moment']);
  return [...list.children].map((event) => event.textContent);
}"""
# How far a run has come that is to end after 100 steps, after 100 seconds, and after either.
PROGRESS = """async ({ steps, seconds }) => {
  const { progress } = await import('./panels.js');
  const metrics = { env_steps: steps, wall_s: seconds };
  const both = progress({ ...metrics, stop_wall_s: 100 }, null, 100);
  return [progress(metrics, null, 100).share, progress({ ...metrics, stop_wall_s: 100 }).share, both.share, both.words];
}"""
# How returns are shown.
SCORES = """async (returns) => {
  const { score } = await import('./words.js');
  return returns.map(score);
}"""
# Tells the page that it is hidden, or visible again.
SEEN = """(isSeen) => {
  Object.defineProperty(document, 'hidden', { value: !isSeen, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""
# As a page that is opened behind another, and without its later looks at the list of runs.
BEHIND = """Object.defineProperty(document, 'hidden', { value: true, configurable: true });
const later = window.setTimeout;
window.setTimeout = (what, pause, ...others) => (pause < 5000 ? later(what, pause, ...others) : 0);"""
# Lets a test change the list of runs before the page gets it.
LISTED = """const ask = window.fetch;
window.fetch = async (address, ...others) => {
  const answer = await ask(address, ...others);
  if (address !== 'runs/' || !window.listed) return answer;
  return new Response(JSON.stringify(window.listed(await answer.json())));
};"""
# The values on the tiles of these names.
TILES = """(names) => names.map((name) =>
  [...document.querySelectorAll('.tile')].find((tile) => tile.lastChild.textContent === name).firstChild.textContent)"""
# Contrast ratios of coloured words, by the rule of WCAG: on cards, and on the background of the page.
CONTRASTS = """() => {
  const style = getComputedStyle(document.documentElement);
  const luminance = (name) => {
    const colour = style.getPropertyValue(name).trim();
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
    const linear = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  return ['--good', '--bad', '--faint', '--accent'].flatMap((words) => ['--card', '--ground'].map((behind) => {
    const [low, high] = [luminance(words), luminance(behind)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""
# Of each run in the table: its id, and the labels of the curves that have its colour.
CURVES = """() => [...document.querySelectorAll('#runs tbody tr')].map((row) => {
  const { backgroundColor } = getComputedStyle(row.querySelector('i'));
  const curves = [...document.querySelectorAll('#compared-charts .u-series')].slice(1);
  const colour = (curve) => getComputedStyle(curve.querySelector('.u-marker')).borderTopColor;
  const own = curves.filter((curve) => colour(curve) === backgroundColor);
  return [row.querySelector('button').title, own.map((curve) => curve.querySelector('.u-label').textContent)];
})"""
# The row of the running run in the table of all runs.
GOES_ON = "[...document.querySelectorAll('#runs tbody tr')].find((row) => row.cells[2].textContent === 'running')"

PHONE = {"width": 390, "height": 844}
FITS = "document.documentElement.scrollWidth <= 390"
# Whether an element is wider than its room, in which it can be scrolled.
SCROLLS = "(id) => document.getElementById(id).offsetWidth > document.getElementById(id).parentNode.clientWidth"
COLOURS = "getComputedStyle(document.documentElement).colorScheme"

# Records, by the title of a chart, how many dashed lines of marks were drawn, and each text with its alignment.
MARKS = """window.marks = {};
const drawing = CanvasRenderingContext2D.prototype;
const { fillText, stroke } = drawing;
const chart = ({ canvas }) =>
  (window.marks[canvas.closest('.chart')?.querySelector('h2').textContent] ??= { lines: 0, words: {} });
drawing.fillText = function (words, ...place) {
  chart(this).words[words] = this.textAlign;
  return fillText.call(this, words, ...place);
};
drawing.stroke = function (...path) {
  if (this.getLineDash().join() === '3,3') chart(this).lines += 1;
  return stroke.apply(this, path);
};"""

# The charts that have marks.
RATES = ["Environment steps/s", "Updates/s", "Samples/s (updates × batch)"]

# Adds a chart on top of everything else.
CHART = """async () => {
  const { Chart } = await import('./charts.js');
  const room = Object.assign(document.createElement('div'), { id: 'zoomed' });
  room.style = 'position: fixed; top: 0; left: 0; width: 800px; z-index: 9';
  document.body.append(room);
  window.chart = new Chart(room, 'a chart', [{ label: 'a curve' }]);
  window.chart.set([[0, 50, 100], [1, 2, 3]], false);
}"""
SHOWN = "[window.chart.plot.scales.x.min, window.chart.plot.scales.x.max]"


def drag(page, what, first, last):
    """Drag over a part of the chart's width."""
    box = page.locator(f"#zoomed {what}").bounding_box()
    across = [box["x"] + share * box["width"] for share in (first, last)]
    page.mouse.move(across[0], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(across[1], box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()


@pytest.fixture
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@contextmanager
def served(*arguments):
    """The link of a dashboard, which then ends as Ctrl+C ends it."""
    dashboard = subprocess.Popen(
        [sys.executable, "-m", "shoal", "dashboard", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        yield dashboard.stdout.readline().strip()
        dashboard.send_signal(signal.SIGINT)
        assert dashboard.wait(WATCHDOG_S) == 0
    finally:
        dashboard.kill()
        dashboard.wait()
        dashboard.stdout.close()


@pytest.fixture
def link(folder):
    """The link of a dashboard beside a run that goes on and one that has ended."""
    shoal.train("cartpole_dqn", quiet=True, **{**SMALL, "run": {**SMALL["run"], "stop_env_steps": 30_000}})
    run = shoal.start("cartpole_dqn", quiet=True, seed=2, **SMALL)
    try:
        with served(str(run.folder)) as link:
            yield link
    finally:
        run.stop()


def picture(page, name):
    folder = os.environ.get("SHOAL_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png")


def test_the_page_draws_a_run_and_compares_it_with_others(browser, link):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    problems = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    # A request that the page itself aborts, such as the events of a run that is no longer shown, is no failure.
    page.on(
        "requestfailed",
        lambda request: None if "ABORTED" in request.failure else problems.append(f"{request.url}: {request.failure}"),
    )
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    wait_for("what the page shows", lambda: page.evaluate("document.querySelectorAll('canvas').length >= 8"))
    assert page.text_content("#title") == "dqn on CartPole-v1"
    assert page.text_content("#state") == "running"
    wait_for(
        "what the page shows", lambda: page.evaluate("document.querySelectorAll('#processes tbody tr').length >= 3")
    )
    wait_for("what the page shows", lambda: page.evaluate("document.querySelectorAll('#replay .bins div').length >= 1"))
    tiles = "[...document.querySelectorAll('.tile')]"
    rate = f"{tiles}.find((tile) => tile.textContent.includes('environment steps/s')).firstChild.textContent"
    steps = f"{tiles}.find((tile) => tile.lastChild.textContent === 'environment steps').firstChild.textContent"
    before = page.evaluate(steps)
    wait_for("what the page shows", lambda: page.evaluate(f"{steps} !== {before!r}"))
    assert page.evaluate(rate) not in ("–", "0")
    wait_for("every chart to be drawn", lambda: min(page.evaluate(INK)) > 100)
    source = "document.querySelector('#picture').src"
    wait_for("a picture of the agent", lambda: page.evaluate("document.querySelector('#picture').naturalWidth") > 100)
    before = page.evaluate(source)
    wait_for("another picture", lambda: page.evaluate(source) != before)
    wait_for("what is said of it", lambda: page.text_content("#caption").startswith("step "))
    wait_for(
        "a video",
        lambda: page.evaluate("[...document.querySelectorAll('#videos img')].some((video) => video.naturalWidth > 100)"),
    )
    page.evaluate("window.watched = document.querySelector('#videos figure')")
    wait_for("a newer video", lambda: page.evaluate("document.querySelector('#videos figure') !== window.watched"))
    assert page.evaluate("window.watched.isConnected"), "a video that somebody watches stays as it is"
    wait_for("a verdict", lambda: "bound" in page.text_content("#bottleneck"))
    assert min(page.evaluate(CONTRASTS)) >= 4.5, "words can be read"
    split = page.get_by_role("img", name="gradients")
    assert split.count() >= 1, "what is told by colours alone is told in words, too"
    picture(page, "dashboard-light")

    name, done = page.evaluate(HOLD)
    wait_for("more updates in the table", lambda: page.evaluate(f"{LEARNER}.cells[6].textContent") != done)
    assert page.evaluate(f"window.held.row === {LEARNER} && window.held.nodes.every((node) => node.isConnected)")
    assert page.evaluate("window.held.touched") == 0, "what does not change is left alone"
    assert page.evaluate("getSelection().toString()") == name, "what somebody has selected stays selected"
    page.evaluate("getSelection().removeAllRanges()")
    assert page.evaluate(EVENTS)

    page.click("#theme")
    wait_for("the charts in the other colours", lambda: min(page.evaluate(INK)) > 100)
    assert min(page.evaluate(CONTRASTS)) >= 4.5, "words can be read"
    picture(page, "dashboard-dark")
    page.click("#by-time")
    wait_for("the charts by time", lambda: min(page.evaluate(INK)) > 100)

    page.click("#show-compare")
    wait_for("what the page shows", lambda: page.evaluate("document.querySelectorAll('#runs tbody tr').length === 2"))
    wait_for("both curves", lambda: page.locator("#compared-charts .u-series").count() == 3)
    wait_for("the chart of both", lambda: min(page.evaluate(INK)) > 100)
    picture(page, "dashboard-compare")
    page.evaluate(f"{GOES_ON}.querySelector('input').focus()")
    steps = page.evaluate(f"{GOES_ON}.cells[6].textContent")
    wait_for("the next look at the runs", lambda: page.evaluate(f"{GOES_ON}.cells[6].textContent") != steps)
    assert page.evaluate(f"document.activeElement === {GOES_ON}.querySelector('input')"), "the focus stays"
    page.keyboard.press("Space")
    wait_for("one curve less", lambda: page.locator("#compared-charts .u-series").count() == 2)
    ended = page.locator("#runs tbody tr", has_text="seed1")
    averages = [ended.locator("td").nth(column).text_content() for column in (11, 12, 13)]
    ended.locator("button").click()
    wait_for("the run that has ended", lambda: page.text_content("#state").startswith("ended"))
    rates = ["environment steps/s", "updates/s", "samples/s"]
    wait_for("the rates of all its training", lambda: page.evaluate(TILES, rates) == averages)
    assert float(page.evaluate(TILES, ["cores used"])[0]) > 0.1, "its report has them"

    page.set_viewport_size(PHONE)
    wait_for("no more than the width of a phone", lambda: page.evaluate(FITS))
    picture(page, "dashboard-phone")
    has_newest, kept, same = page.evaluate(MANY_ROWS, 20_000)
    assert has_newest, "a page that stays open shows the last row, however long the run"
    assert kept <= 4_096
    assert same, "whenever a page is opened, it shows the same rows"
    length, *rates = page.evaluate(RATES_OF_A_LONG_RUN, 20_000)
    assert length > 2_000 and rates == [None, 100], "what lies between two points of a rate is in it"
    routine, confirmations = page.evaluate(MANY_EVALUATIONS, 10_000)
    assert routine < 4_096 and confirmations == 10, "evaluations take bounded room, and no rare one goes"
    kept = page.evaluate(REPEATED, [15, 22, 28, 38, 26])
    assert kept == [15, 22, 38, 26], "the curve leaves out what the run repeats, and a confirmation stays"
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.evaluate(CHART)
    drag(page, ".u-over", 0.25, 0.5)
    assert page.evaluate("window.chart.plot.scales.x.max") < 70, "a part is shown"
    before = page.evaluate(SHOWN)
    page.evaluate("window.chart.set([[0, 50, 100, 150], [1, 2, 3, 4]], false)")
    assert page.evaluate(SHOWN) == before, "what somebody looks at stays when the run goes on"
    page.locator("#zoomed .u-over").dblclick()
    assert page.evaluate(SHOWN) == [0, 150]
    assert problems == []
    assert all(url.startswith((link.split("#")[0], "data:")) for url in asked), "nothing comes from elsewhere"


def test_a_page_stays_with_its_run_until_somebody_chooses_another(browser, link):
    page = browser.new_page(timezone_id="Asia/Tokyo")
    page.add_init_script(LISTED)
    page.goto(link.split("#")[0])
    wait_for("the newest run", lambda: page.text_content("#state") == "running")
    shown = "[document.querySelector('#choice').value, document.querySelector('#state').textContent]"
    before = page.evaluate(shown)
    options = "document.querySelectorAll('#choice option')"
    page.evaluate(f"window.held = [...{options}]")
    page.evaluate("(window.listed = (cards) => [{ ...cards[0], id: 'newer', name: 'newer' }, ...cards], null)")
    wait_for("a newer run", lambda: page.evaluate(f"{options}.length") == 3)
    assert page.evaluate(shown) == before, "the page shows what it has shown"
    assert page.evaluate("window.held.every((option) => option.isConnected)"), "a list that is open stays"

    page.focus("#choice")
    page.keyboard.press("ArrowDown")
    wait_for("the run below", lambda: page.text_content("#state").startswith("ended"))
    assert page.evaluate("document.activeElement.id") == "choice", "the list is walked by the keyboard"
    page.keyboard.press("ArrowUp")
    wait_for("the run above", lambda: page.evaluate(shown) == before)

    page.evaluate(f"(window.listed = (cards) => cards.filter((card) => card.id !== {before[0]!r}), null)")
    wait_for("a list without the run", lambda: page.evaluate(f"{options}.length") == 1)
    assert page.text_content("#state") == "running", "nor does it leave a run that is listed no more"

    no_moment, began = page.evaluate(MOMENTS)
    assert began.startswith("1/1/2026, 9:00:00"), "events are told by the reader's clock"
    assert began.endswith(" began")
    assert no_moment == "2026-99-99T12:00:00.123Z no moment"


def test_a_phone_shows_a_run_that_goes_on_and_all_runs_in_its_width(browser, link):
    page = browser.new_page(viewport=PHONE)
    page.goto(link)
    wait_for("its charts", lambda: page.evaluate("document.querySelectorAll('canvas').length >= 8"))
    wait_for("its processes", lambda: page.evaluate("document.querySelectorAll('#processes tbody tr').length >= 3"))
    wait_for("its replay", lambda: page.evaluate("document.querySelectorAll('#replay .bins div').length >= 1"))
    wait_for("a picture of the agent", lambda: page.evaluate("document.querySelector('#picture').naturalWidth") > 100)
    wait_for("no more than the width of a phone", lambda: page.evaluate(FITS))
    assert page.evaluate(SCROLLS, "processes"), "the table is wider, and is scrolled by itself"
    picture(page, "dashboard-phone-running")

    page.click("#show-compare")
    wait_for("all runs", lambda: page.evaluate("document.querySelectorAll('#runs tbody tr').length === 2"))
    wait_for("both curves", lambda: page.locator("#compared-charts .u-series").count() == 3)
    wait_for("no more than the width of a phone", lambda: page.evaluate(FITS))
    assert page.evaluate(SCROLLS, "runs"), "the table is wider, and is scrolled by itself"
    picture(page, "dashboard-phone-compare")


def test_dark_and_light_follow_the_system_until_somebody_chooses(browser, folder):
    with served() as link:
        page = browser.new_page(color_scheme="dark")
        page.goto(link)
        wait_for("the colours of the system", lambda: page.evaluate(COLOURS) == "dark")
        page.emulate_media(color_scheme="light")
        wait_for("its other colours", lambda: page.evaluate(COLOURS) == "light")
        page.click("#theme")
        assert page.evaluate(COLOURS) == "dark", "somebody has chosen"
        page.reload()
        wait_for("what was chosen, though the system is light", lambda: page.evaluate(COLOURS) == "dark")


def probe(wall_s, knobs, to, verdict="accepted"):
    """A line of adaptation.jsonl, as a run writes it."""
    home = {"actors": 1, "environments": 8, "batch_size": 32}
    speed = {"median": 100.0, "deviation": 1.0, "windows": 5}
    line = {"wall_s": wall_s, "knobs": knobs, "from": home, "to": {**home, **to}}
    line |= {"objective": "trained_per_second", "rounds": 1, "before": speed, "tried": speed, "after": speed}
    line |= {"verdict": verdict, "reason": "100.0 % more", "configured": home, "resumptions": 0}
    return json.dumps(line) + "\n"


def test_rates_are_marked_where_a_run_fitted_itself_to_the_machine(browser, folder):
    run = shoal.train("cartpole_dqn", quiet=True, **{**SMALL, "run": {**SMALL["run"], "stop_wall_s": 3.0}})
    moments = [line["wall_s"] for line in run.metrics()]
    tried = run.folder / "adaptation.jsonl"
    kept, dropped = ["actor.count"], ["learner.batch_size"]
    tried.write_text(
        probe(moments[0], kept, {"actors": 2}) + probe(moments[-1], dropped, {"batch_size": 64}, "rejected")
    )
    with served(str(run.folder)) as link:
        page = browser.new_page()
        page.add_init_script(MARKS)
        page.goto(link)

        def are_marked(words):
            """Whether all curves of rates have marks, and these words to the right of one."""
            marks = page.evaluate("window.marks")
            rates = [marks.get(title) for title in RATES]
            return all(chart and chart["lines"] > 0 and chart["words"].get(words) == "left" for chart in rates)

        wait_for("a mark", lambda: are_marked("count 2"))
        with tried.open("a") as file:
            file.write(probe(moments[-1], ["actor.count", "actor.environments"], {"actors": 4, "environments": 16}))
        wait_for("a mark that comes later", lambda: are_marked("count 4, environments 16"))
        marks = page.evaluate("window.marks")
        assert "batch_size 64" not in marks[RATES[0]]["words"], "what was tried and not kept is no change"
        assert marks["Return"]["lines"] == 0, "returns are not about the machine"

        page.evaluate("window.marks = {}")
        page.click("#by-time")
        wait_for("the marks by time", lambda: are_marked("count 2") and are_marked("count 4, environments 16"))


def ended(**last):
    """A short run that has ended, whose last line of metrics also has these values."""
    run = shoal.train("cartpole_dqn", quiet=True, **{**SMALL, "run": {**SMALL["run"], "stop_env_steps": 2_000}})
    line = json.dumps({**run.metrics()[-1], **last})
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(f"{line}\n")
    return run


def test_the_best_confirmed_return_of_a_run_is_the_one_in_its_metrics(browser, folder):
    run = ended(best_eval_return=123)
    (run.folder / "evaluations.jsonl").unlink(missing_ok=True)
    with served(str(run.folder)) as link:
        page = browser.new_page()
        page.goto(link)
        page.click("#show-compare")
        wait_for("the table", lambda: page.locator("#runs tbody td").nth(10).text_content() == "123.0")


def test_an_algorithm_s_metric_has_a_chart_though_it_is_named_like_a_time_of_the_run(browser, folder):
    ended(learner_idle_s=0.5, actor_core_wait_s=0.5)
    with served("runs/latest") as link:
        page = browser.new_page()
        page.goto(link)
        titles = page.locator("#charts h2")
        wait_for("its chart", lambda: "learner idle s" in titles.all_text_contents())
        assert not any("core wait" in title for title in titles.all_text_contents())


def test_a_chosen_run_has_a_colour_of_its_own_also_beside_one_of_the_same_name(browser, folder):
    names = [ended().folder.resolve().name for _ in range(2)]
    with served("runs/latest") as link:
        page = browser.new_page()
        page.goto(link)
        page.click("#show-compare")
        wait_for("both curves", lambda: page.locator("#compared-charts .u-series").count() == 3)
        curves = page.evaluate(CURVES)
        assert sorted(name for name, _ in curves) == sorted(names)
        assert all(labels == [f"{name} (dqn)"] for name, labels in curves)
        page.locator("#runs input").first.uncheck()
        wait_for("one curve", lambda: page.locator("#compared-charts .u-series").count() == 2)
        assert page.locator("#runs i").count() == 1


def test_a_page_that_was_opened_behind_another_shows_its_run_as_soon_as_it_is_seen(browser, folder):
    run = shoal.train("cartpole_dqn", quiet=True, **{**SMALL, "run": {**SMALL["run"], "stop_env_steps": 2_000}})
    with served(str(run.folder)) as link:
        page = browser.new_page()
        page.add_init_script(BEHIND)
        page.goto(link)
        page.evaluate(SEEN, True)
        wait_for("what the page shows", lambda: page.text_content("#state").startswith("ended"))


def test_a_page_that_comes_back_to_a_run_says_that_its_folder_is_gone(browser, folder):
    run = shoal.train("cartpole_dqn", quiet=True, **{**SMALL, "run": {**SMALL["run"], "stop_env_steps": 2_000}})
    with served(str(run.folder)) as link:
        page = browser.new_page()
        page.goto(link)
        wait_for("what the page shows", lambda: page.text_content("#state").startswith("ended"))
        page.evaluate(SEEN, False)
        shutil.rmtree(run.folder)
        page.evaluate(SEEN, True)
        wait_for("what became of the run", lambda: "was moved or removed" in page.text_content("#notice"))
        assert page.text_content("#state") == "gone"


def test_a_page_shows_a_small_goal_and_says_that_its_dashboard_is_silent_or_gone(browser, folder):
    limits = {**SMALL["run"], "stop_env_steps": 2_000, "stop_eval_return": 0.95}
    shoal.train("catch_dqn", quiet=True, **{**SMALL, "run": limits})
    dashboard = subprocess.Popen([sys.executable, "-m", "shoal", "dashboard"], stdout=subprocess.PIPE, text=True)
    try:
        page = browser.new_page()
        page.goto(dashboard.stdout.readline().strip())
        wait_for(
            "what the page shows",
            lambda: page.evaluate("document.querySelector('#state').textContent.startsWith('ended')"),
        )
        assert not page.is_visible("#notice")
        assert "goal 0.95" in page.text_content("#facts")
        shown = ["0.95", "-0.50", "9.99", "42.3", "12345", "1.5M", "–"]
        assert page.evaluate(SCORES, [0.95, -0.5, 9.99, 42.31, 12_345.4, 1.5e6, None]) == shown, "as in the terminal"
        progress = page.evaluate(PROGRESS, {"steps": 1, "seconds": 75})
        assert progress == [0.01, 0.75, 0.75, "1 of 100 environment steps, 1:15 of 1:40"], "the nearer limit counts"
        dashboard.send_signal(signal.SIGSTOP)
        wait_for("word of its silence", lambda: "is silent" in page.text_content("#notice"))
        dashboard.send_signal(signal.SIGCONT)
        wait_for("its next message", lambda: not page.is_visible("#notice"))
    finally:
        dashboard.kill()
        dashboard.wait()
        dashboard.stdout.close()
    wait_for(
        "what the page shows",
        lambda: page.evaluate("document.querySelector('#notice').textContent.includes('does not answer')"),
    )
