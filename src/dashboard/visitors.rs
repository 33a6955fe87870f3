//! Connections, of which there are few: every user of the machine may connect, and the dashboard has to open files, too.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// The most connections at a time: a page has some, and a process may open 1024 files on most systems.
const MOST: usize = 128;
/// How long a connection may last without an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets in as many as there are places.
pub(super) struct Visitors {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

/// A connection, and its place.
pub(super) struct Visit {
    stream: TcpStream,
    /// When it ends, unless it has been answered by then.
    unanswered: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Visitors {
    pub(super) fn of(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MOST)), patience: PATIENCE }
    }
}

impl Listener for Visitors {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes it");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Visit { stream, unanswered: Some(Box::pin(sleep(self.patience))), _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Visit {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let visit = self.get_mut();
        if let Some(end) = &mut visit.unanswered
            && end.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut visit.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let visit = self.get_mut();
        visit.unanswered = None;
        Pin::new(&mut visit.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;

    use super::*;

    fn read(visit: &mut Visit) -> impl Future<Output = io::Result<()>> {
        poll_fn(move |context| Pin::new(&mut *visit).poll_read(context, &mut ReadBuf::new(&mut [0; 8])))
    }

    #[test]
    fn no_more_are_let_in_than_there_are_places_and_who_asks_nothing_is_sent_away() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut visitors = Visitors { listener, places: Arc::new(Semaphore::new(2)), patience: Duration::from_millis(1) };
            let guests: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
            let (first, _) = visitors.accept().await;
            let (mut silent, _) = visitors.accept().await;
            assert!(visitors.accept().now_or_never().is_none(), "there are two places");
            drop(first);
            let (mut answered, _) = visitors.accept().await;
            poll_fn(|context| Pin::new(&mut answered).poll_write(context, b"answer")).await.unwrap();
            assert_eq!(read(&mut silent).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            sleep(2 * visitors.patience).await;
            assert!(read(&mut answered).now_or_never().is_none(), "who has been answered may stay");
            drop(guests);
        });
    }
}
