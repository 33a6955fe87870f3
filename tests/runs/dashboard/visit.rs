//! The dashboard as a program of its own, and what a browser would ask it.
#![allow(unreachable_pub, reason = "the module is this test's own")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::programs::{Supervised, WATCHDOG};

/// A dashboard under way. Dropping it ends it.
pub struct Dashboard {
    child: Child,
    pub port: u16,
    /// The path that the link names.
    pub path: String,
    /// The run that the link leads to.
    pub run: String,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Messages of one run, as they come.
pub struct Events(BufReader<TcpStream>);

impl Dashboard {
    /// Start the program with the registry of `run`.
    pub fn start(run: &Supervised, arguments: &[&str]) -> Self {
        Self::start_in(run.folder.path(), arguments)
    }

    /// Start the program with the registry in `folder`.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_at(folder, folder, arguments)
    }

    /// Start the program in the folder `here`, with the registry in `folder`.
    pub fn start_at(folder: &Path, here: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dashboard"));
        command.args(arguments).env("XDG_RUNTIME_DIR", folder).current_dir(here);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let rest = link.trim_end().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{link:?} is no link"));
        let (port, path) = rest.split_once('/').unwrap();
        let (path, run) = path.split_once('#').unwrap_or((path, ""));
        Self { child, port: port.parse().unwrap(), path: format!("/{path}"), run: run.into() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ask for what lies at `path` below the link, as a browser would.
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", &format!("{}{path}", self.path), &[])
    }

    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}");
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Ask with any method, path and headers; without one of its own the request has the right host.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (status, head, body) = self.answer(method, path, headers);
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    /// The status and the content of what lies at `path` below the link, whatever it is.
    pub fn bytes(&self, path: &str) -> (u16, Vec<u8>) {
        let (status, _, body) = self.answer("GET", &format!("{}{path}", self.path), &[]);
        (status, body)
    }

    /// Ask with any method, path and headers: the status, the head in small letters, and the content, whatever it is.
    pub fn answer(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
        let mut all = Vec::new();
        self.connect(method, path, headers, "close").read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), all[end + 4..].to_vec())
    }

    /// All that comes, until the dashboard ends the connection, when `path` is asked for on one that would stay.
    pub fn until_closed(&self, path: &str) -> String {
        let mut all = String::new();
        self.connect("GET", path, &[], "keep-alive").read_to_string(&mut all).unwrap();
        all
    }

    /// Listen to the run `id`.
    pub fn listen(&self, id: &str) -> Events {
        let connection = self.connect("GET", &format!("{}runs/{id}/events", self.path), &[], "keep-alive");
        Events(BufReader::new(connection))
    }

    fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)], connection: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: {connection}\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        stream
    }

    /// End it as Ctrl+C does: its exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        crate::support::programs::kill(self.child.id(), nix::sys::signal::Signal::SIGINT);
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Events {
    /// The next message: its kind and its content.
    pub fn next(&mut self) -> (String, Value) {
        let mut kind = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the dashboard has closed the connection");
            if let Some(named) = line.trim_end().strip_prefix("event: ") {
                kind = named.into();
            } else if let Some(content) = line.trim_end().strip_prefix("data: ") {
                return (kind, serde_json::from_str(content).unwrap());
            }
        }
    }

    /// The next message of this kind that satisfies `condition`.
    pub fn wait_for(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + WATCHDOG;
        loop {
            let (found, content) = self.next();
            if found == kind && condition(&content) {
                return content;
            }
            assert!(std::time::Instant::now() < deadline, "gave up waiting for {kind}; last {found}: {content}");
        }
    }
}
