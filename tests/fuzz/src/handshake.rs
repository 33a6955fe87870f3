//! What somebody says who knocks at a run.

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

/// Let somebody knock who says `message`.
pub fn read(message: &[u8]) {
    LISTENER.with_borrow_mut(|(listener, path)| {
        let mut visitor = UnixStream::connect(path).expect("a listener");
        visitor.set_nonblocking(true).expect("a socket");
        let _ = visitor.write(message);
        visitor.shutdown(std::net::Shutdown::Write).expect("a connection");
        loop {
            for knock in listener.hear() {
                assert!(knock.answer(|_| Err(Refusal::Full { slots: 1 })).is_none(), "nobody was let in");
            }
            if !listener.has_connections() {
                break;
            }
        }
        let _ = visitor.read(&mut [0; 4096]);
    });
}
