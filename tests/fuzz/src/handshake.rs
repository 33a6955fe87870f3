//! Reads what a stranger sends to the socket of a run.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use shoal::rendezvous::{Listener, Refusal};

thread_local! {
    static LISTENER: RefCell<(Listener, PathBuf)> = {
        let path = super::folder().join("socket");
        RefCell::new((Listener::bind(&path).expect("a socket"), path))
    };
}

/// Connect and send `message`; then connect again and send it behind its length, as the protocol wants.
pub fn read(message: &[u8]) {
    let length = u32::try_from(message.len()).expect("a short message");
    knock(message);
    knock(&[&length.to_le_bytes()[..], message].concat());
}

fn knock(said: &[u8]) {
    LISTENER.with_borrow_mut(|(listener, path)| {
        let mut visitor = UnixStream::connect(path).expect("a listener");
        visitor.set_nonblocking(true).expect("a socket");
        let _ = visitor.write(said);
        answer(listener);
        // The stranger sends no more.
        visitor.shutdown(std::net::Shutdown::Write).expect("a connection");
        while listener.has_connections() {
            answer(listener);
        }
        let _ = visitor.read(&mut [0; 4096]);
    });
}

fn answer(listener: &mut Listener) {
    for knock in listener.hear() {
        assert!(knock.answer(|_| Err(Refusal::Full { slots: 1 })).is_none(), "nobody was let in");
    }
}
