//! The dashboard shows runs to whoever knows its link and to nobody else, and does not harm them.

mod visit;

use nix::sys::signal::Signal;
use visit::Dashboard;

use crate::support::programs::{self, kill, start, stop, try_kill};

/// The name of the folder that `latest` leads to.
fn id_of(run: &programs::Supervised) -> String {
    run.run_folder().canonicalize().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// A run that has learned and is over, and a dashboard of it.
fn ended() -> (programs::Supervised, Dashboard) {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGINT);
    let dashboard = Dashboard::start(&run, &[run.run_folder().to_str().unwrap()]);
    (run, dashboard)
}

#[test]
fn only_who_knows_the_link_and_comes_from_this_machine_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let dashboard = Dashboard::start_in(folder.path(), &[]);
    let host = format!("127.0.0.1:{}", dashboard.port);
    let page = dashboard.get("");
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!doctype html>") && page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    assert_eq!(dashboard.path.len(), 2 + 32, "the token has 128 bits: {}", dashboard.path);
    let own = [("Origin", &*format!("http://{host}")), ("Host", &host)];
    assert_eq!(dashboard.ask("GET", &format!("{}runs/", dashboard.path), &own).status, 200, "a page of its own may ask");
    let tunnel = [("Host", "localhost:9999"), ("Origin", "http://localhost:9999")];
    assert_eq!(dashboard.ask("GET", &dashboard.path, &tunnel).status, 200, "through a tunnel the port is another");

    let link = dashboard.path.clone();
    let (without_slash, _) = link.rsplit_once('/').unwrap();
    let redirected = dashboard.ask("GET", without_slash, &[]);
    let location = format!("location: {link}");
    assert!(redirected.status == 308 && redirected.head.lines().any(|line| line == location), "{}", redirected.head);
    let wrong = format!("/{}/", "0".repeat(32));
    let (wrong_without_slash, _) = wrong.rsplit_once('/').unwrap();
    let refused = [
        ("GET", &*link, vec![("Host", "example.org")], 403, "a name that leads here"),
        ("GET", &link, vec![("Origin", "http://example.org")], 403, "somebody else's page"),
        ("GET", &link, vec![("Origin", "null")], 403, "a page without a name"),
        ("GET", &wrong, vec![], 404, "another token"),
        ("GET", wrong_without_slash, vec![], 404, "another token, and no slash"),
        ("GET", without_slash, vec![("Host", "example.org")], 403, "a name that leads here, and no slash"),
        ("GET", without_slash, vec![("Origin", "http://example.org")], 403, "somebody else's page, and no slash"),
        ("POST", without_slash, vec![("Content-Length", "0")], 405, "a method that changes something, and no slash"),
        ("GET", "/", vec![], 404, "no token"),
        ("GET", "/style.css", vec![], 404, "no token"),
        ("POST", &link, vec![("Content-Length", "0")], 405, "a method that changes something"),
        ("HEAD", &link, vec![], 405, "another method"),
    ];
    for (method, path, headers, status, who) in refused {
        let answer = dashboard.ask(method, path, &headers);
        assert_eq!((answer.status, &*answer.body), (status, ""), "{who}");
    }
    assert!(dashboard.until_closed("/").starts_with("HTTP/1.1 404"), "a stranger's connection does not stay");
    for path in [
        "../",
        "%2e%2e/%2e%2e/etc/passwd",
        "runs/../../../etc/passwd/history",
        "runs/%2e%2e/history",
        "runs/..%2f..%2fetc/events",
        "main.rs",
    ] {
        let answer = dashboard.get(path);
        assert!(answer.status == 404 && !answer.body.contains("root:"), "{path}: {} {}", answer.status, answer.body);
    }
}

#[test]
fn it_listens_at_the_address_of_its_link_and_at_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let dashboard = Dashboard::start_in(folder.path(), &[]);
    assert_eq!(dashboard.get("").status, 200);
    // A server that listens at all addresses would answer at this one as well.
    let elsewhere = std::net::TcpStream::connect(("127.0.0.2", dashboard.port)).map_err(|error| error.kind());
    assert_eq!(elsewhere.unwrap_err(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn every_file_that_the_page_names_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let dashboard = Dashboard::start_in(folder.path(), &[]);
    let mut found = vec![String::new()];
    let mut looked = 0;
    while let Some(name) = found.get(looked).cloned() {
        looked += 1;
        let answer = dashboard.get(&name);
        assert_eq!(answer.status, 200, "{name}");
        let quoted = answer.body.split('"').map(|word| word.trim_start_matches("./"));
        let named = quoted.filter(|word| (word.ends_with(".js") || word.ends_with(".css")) && !word.contains('/') && word.len() > 3);
        for name in named.map(str::to_owned) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    assert!(found.len() >= 9, "{found:?}");
}

#[test]
fn a_run_is_shown_while_it_goes_on_and_when_it_has_ended() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for_updates(20);
    let dashboard = Dashboard::start(&run, &[run.run_folder().to_str().unwrap()]);
    let id = id_of(&run);
    assert_eq!(dashboard.run, id, "the link leads to the run");
    let runs = dashboard.json("runs/");
    assert_eq!((&runs[0]["id"], &runs[0]["state"], &runs[0]["algorithm"]), (&id.clone().into(), &"running".into(), &"dqn".into()));

    let mut events = dashboard.listen(&id);
    let (kind, state) = events.next();
    assert_eq!((&*kind, &state["card"]["state"], &state["problem"]), ("state", &"running".into(), &serde_json::Value::Null));
    let (kind, history) = events.next();
    assert_eq!(kind, "history");
    let columns = history["columns"].as_object().unwrap();
    let rows = columns["env_steps"].as_array().unwrap().len();
    assert!(rows > 0 && columns.values().all(|column| column.as_array().unwrap().len() == rows), "{columns:?}");

    let first = events.wait_for("now", |now| now["run"]["env_steps"].as_u64() > Some(0));
    let later =
        events.wait_for("now", |now| now["run"]["env_steps"].as_u64() > first["run"]["env_steps"].as_u64() && now["tree"].is_object());
    assert!(later["run"]["learned_per_s"].as_f64() > Some(0.0) && later["run"]["cores_used"].as_f64() > Some(0.0), "{}", later["run"]);
    let actor = later["processes"].as_array().unwrap().iter().find(|process| process["role"] == "actor").unwrap().clone();
    assert!(actor["cores_used"].as_f64() > Some(0.0), "{actor}");
    let growth = events.wait_for("growth", |growth| !growth["rows"].as_array().unwrap().is_empty());
    assert!(growth["rows"][0]["learned_per_s"].is_number(), "{growth}");
    events.wait_for("growth", |growth| growth["bottleneck"].is_string());

    run.end_by(Signal::SIGINT);
    let ended = events.wait_for("state", |state| state["card"]["state"] == "ended");
    assert_eq!(ended["card"]["reason"], "interrupted");
    let verdict = ended["card"]["bottleneck"].as_str().unwrap();
    assert!(run.log().contains(verdict), "the sentence of the report: {verdict}");
    assert!(ended["card"]["cores_used"].as_f64() > Some(0.0), "{ended}");
    let after = dashboard.json(&format!("runs/{id}/history"));
    assert!(after["columns"]["env_steps"].as_array().unwrap().len() > rows && !after["events"].as_array().unwrap().is_empty());
    let returns = dashboard.json(&format!("runs/{id}/returns"));
    let names: Vec<&str> = returns["columns"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["env_steps", "train_return_mean", "wall_s"]);
    assert!(names.iter().all(|name| returns["columns"][name] == after["columns"][name]), "{returns}");
    drop(events);
    let (code, said) = dashboard.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_killed_supervisor_is_named_and_its_curves_stay() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let dashboard = Dashboard::start(&run, &[&run.pid().to_string()]);
    let id = id_of(&run);
    let mut events = dashboard.listen(&id);
    events.wait_for("now", |_| true);
    let supervisor = run.pid();
    kill(supervisor, Signal::SIGKILL);
    let state = events.wait_for("state", |state| state["card"]["state"] == "killed");
    assert_eq!(state["card"]["supervisor_pid"], supervisor);
    assert!(!dashboard.json(&format!("runs/{id}/history"))["columns"]["env_steps"].as_array().unwrap().is_empty());
}

#[test]
fn what_the_visualizer_shows_and_its_videos_are_on_the_page() {
    let mut run = start(&["visualizer.enabled=true", "visualizer.pictures_per_s=100", "visualizer.video_interval_s=0.001"]);
    run.wait_for_updates(20);
    let dashboard = Dashboard::start(&run, &[run.run_folder().to_str().unwrap()]);
    let id = id_of(&run);
    assert_eq!(dashboard.bytes(&format!("runs/{id}/picture")).0, 404, "nobody follows the run yet");
    let mut events = dashboard.listen(&id);
    let first = events.wait_for("now", |now| now["picture"]["version"].is_u64());
    let ask = |version: u64| dashboard.bytes(&format!("runs/{id}/picture?{version}"));
    let version_of = |now: &serde_json::Value| now["picture"]["version"].as_u64().unwrap();
    let (status, picture) = ask(version_of(&first));
    assert_eq!((status, &picture[..8]), (200, &b"\x89PNG\r\n\x1a\n"[..]));
    let later = events.wait_for("now", |now| now["picture"]["version"].as_u64() > Some(version_of(&first) + 5));
    let (status, moved) = ask(version_of(&later));
    assert!(status == 200 && moved != picture, "the picture moves: {status}");
    assert!(ask(version_of(&first)) == (200, picture), "a page that is late gets what it was told of");
    assert_eq!(ask(version_of(&later) + 1_000_000).0, 404, "nobody was told of it");
    assert_eq!(dashboard.bytes(&format!("runs/{id}/picture?newest")).0, 404, "no version");
    assert_eq!(dashboard.bytes(&format!("runs/{id}/picture")).0, 200, "the newest");

    let state = events.wait_for("state", |state| state["card"]["videos"].as_array().is_some_and(|videos| !videos.is_empty()));
    let newest = &state["card"]["videos"][0];
    let name = newest["name"].as_str().unwrap();
    assert!(newest["env_steps"].is_u64() && newest["episode_return"].is_f64(), "{newest}");
    let (status, video) = dashboard.bytes(&format!("runs/{id}/videos/{name}"));
    assert_eq!((status, &video[..6]), (200, &b"GIF89a"[..]));
    let path = format!("{}runs/{id}/videos/{name}", dashboard.path);
    for (asked, first, last) in [("bytes=0-5", 0, 5), ("bytes=6-", 6, video.len() - 1), ("bytes=-4", video.len() - 4, video.len() - 1)] {
        let (status, head, part) = dashboard.answer("GET", &path, &[("Range", asked)]);
        assert_eq!((status, &*part), (206, &video[first..=last]), "{asked}");
        assert!(head.contains(&format!("content-range: bytes {first}-{last}/{}\r\n", video.len())), "{asked}: {head}");
    }
    for (asked, status) in [(format!("bytes={}-", video.len()), 416), ("bytes=5-2".into(), 416), ("pictures=0-5".into(), 200)] {
        assert_eq!(dashboard.answer("GET", &path, &[("Range", &*asked)]).0, status, "{asked}");
    }
    for name in ["..%2frun.json", "%2e%2e/config.toml", "nothing.gif", "..%2f..%2fconfig.toml"] {
        assert_eq!(dashboard.get(&format!("runs/{id}/videos/{name}")).status, 404, "{name}");
    }
}

#[test]
fn a_run_is_found_from_another_folder_than_the_one_it_was_started_in_and_stays_when_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let relative: Vec<&str> = programs::SMALL.iter().copied().chain(["run.folder=\"runs\""]).collect();
    let mut command = programs::command(folder.path(), &relative);
    command.current_dir(folder.path());
    let mut run = programs::Supervised::spawn(command, folder);
    run.wait_for_updates(20);
    let elsewhere = run.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for arguments in [vec![], vec![run.pid().to_string()]] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let dashboard = Dashboard::start_at(run.folder.path(), &elsewhere, &arguments);
        assert_eq!(dashboard.json("runs/")[0]["state"], "running", "{arguments:?}");
    }
    let dashboard = Dashboard::start_at(run.folder.path(), &elsewhere, &[]);
    let id = dashboard.json("runs/")[0]["id"].as_str().unwrap().to_owned();
    run.end_by(Signal::SIGINT);
    let (_, state) = dashboard.listen(&id).next();
    assert_eq!(state["card"]["state"], "ended");
}

#[test]
fn a_run_whose_folder_was_moved_while_it_goes_on_is_found_by_the_process_id_of_its_supervisor() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    run.move_folder("archive");
    run.wait_for_log("the folder of the run was moved");
    let dashboard = Dashboard::start(&run, &[&run.pid().to_string()]);
    assert_eq!((&*dashboard.run, &dashboard.json("runs/")[0]["state"]), ("archive", &"running".into()));
}

#[test]
fn a_copy_of_a_run_s_folder_does_not_hide_the_run() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let id = id_of(&run);
    let copy = run.folder.path().join("copies").join(&id);
    std::fs::create_dir_all(&copy).unwrap();
    for file in ["run.json", "config.toml", "metrics.jsonl"] {
        std::fs::copy(run.run_folder().join(file), copy.join(file)).unwrap();
    }
    let dashboard = Dashboard::start(&run, &[copy.to_str().unwrap()]);
    let runs = dashboard.json("runs/");
    let states: Vec<_> = runs.as_array().unwrap().iter().map(|card| (&card["id"], &card["state"])).collect();
    assert_eq!(states, [(&id.into(), &"running".into())], "{runs}");
}

#[test]
fn ten_pages_see_the_same_run() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let dashboard = Dashboard::start(&run, &[run.run_folder().to_str().unwrap()]);
    let id = id_of(&run);
    let mut pages: Vec<_> = (0..10).map(|_| dashboard.listen(&id)).collect();
    for page in &mut pages {
        let first = page.wait_for("now", |now| now["run"]["env_steps"].is_u64());
        page.wait_for("now", |now| now["run"]["env_steps"].as_u64() > first["run"]["env_steps"].as_u64());
    }
}

#[test]
fn coming_back_to_a_run_does_not_read_all_its_files_again() {
    let (run, dashboard) = ended();
    let id = id_of(&run);
    let mut page = dashboard.listen(&id);
    let history = page.wait_for("history", |_| true);
    drop(page);
    // Time for several readings without a page. The lines from before are removed now, but were read.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let metrics = run.run_folder().join("metrics.jsonl");
    let length = std::fs::metadata(&metrics).unwrap().len();
    std::fs::write(&metrics, "\n".repeat(length.try_into().unwrap())).unwrap();
    assert_eq!(dashboard.json(&format!("runs/{id}/history"))["columns"], history["columns"]);
    assert_eq!(dashboard.listen(&id).wait_for("history", |_| true)["columns"], history["columns"]);
}

#[test]
fn a_page_of_a_run_in_which_nothing_happens_hears_that_the_dashboard_is_there() {
    let (run, dashboard) = ended();
    dashboard.listen(&id_of(&run)).wait_for("alive", |_| true);
}

#[test]
fn a_run_whose_folder_is_gone_is_told_to_open_pages_and_answered_to_no_other() {
    let (run, dashboard) = ended();
    let id = id_of(&run);
    let mut page = dashboard.listen(&id);
    page.wait_for("history", |_| true);
    std::fs::remove_dir_all(run.run_folder().canonicalize().unwrap()).unwrap();
    page.wait_for("state", |state| state["card"].is_null());
    assert_eq!(dashboard.get(&format!("runs/{id}/events")).status, 404);
    assert_eq!(dashboard.json("runs/"), serde_json::json!([]), "by which a page knows that its link is right");
}

#[test]
fn whatever_a_segment_holds_the_dashboard_goes_on() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let dashboard = Dashboard::start(&run, &[run.run_folder().to_str().unwrap()]);
    let id = id_of(&run);
    let mut events = dashboard.listen(&id);
    events.wait_for("now", |_| true);
    // All processes of the run stand still, so that only the dashboard meets what is written now. The supervisor first: it then starts no
    // process, and one that ends keeps its id.
    stop(run.pid());
    let all = run.all_processes();
    let workers: Vec<u32> = all.into_iter().filter(|&pid| pid != dashboard.pid()).collect();
    for &pid in &workers {
        kill(pid, Signal::SIGSTOP);
    }
    let path = format!("/dev/shm{}", programs::segments_of(run.pid())[0]);
    let whole = std::fs::read(&path).unwrap();
    let mut garbage = whole.clone();
    for (position, byte) in garbage.iter_mut().enumerate().skip(4096) {
        *byte = (position as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0];
    }
    write_in_place(&path, &garbage);
    for _ in 0..12 {
        events.wait_for("now", |now| now["processes"].is_array());
    }
    let late = dashboard.listen(&id).wait_for("now", |now| now["description"].is_null());
    assert!(late["description_problem"].is_string(), "{late}");
    assert_eq!(dashboard.get("").status, 200);
    write_in_place(&path, &whole);
    // With the supervisor the kernel kills its children.
    for &pid in &workers {
        try_kill(pid, Signal::SIGKILL);
    }
    for name in programs::segments_of(run.pid()) {
        let _ = std::fs::remove_file(format!("/dev/shm{name}"));
    }
    let (code, said) = dashboard.end();
    assert_eq!(code, Some(0), "{said}");
    let _ = std::fs::remove_dir_all(run.folder.path().join("shoal"));
}

/// Write into the file itself, so that a process that has it mapped sees it; it would not see a file that replaced it.
fn write_in_place(path: &str, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
}

#[test]
fn what_cannot_be_shown_is_said_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dashboard"));
        let output = command.args(arguments).env("XDG_RUNTIME_DIR", folder.path()).current_dir(folder.path()).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["no/such/run"]).contains("no/such/run"));
    assert!(refused(&["4194304"]).contains("4194304"));
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(&["--port", &port]);
    assert!(said.contains(&port) && said.contains("leave out --port"), "{said}");
}
