//! Connections, of which there are few: every user of the machine may connect, and the dashboard has to open files, too.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// The most connections at a time: a page has some, and a process may open 1024 files on most systems.
const MOST: usize = 128;
/// How long a connection may last without a request that is let in.
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
    /// When it ends, unless a request was let in by then.
    end: Pin<Box<Sleep>>,
    let_in: LetIn,
    _place: OwnedSemaphorePermit,
}

/// Whether a request of a connection was let in: its answer may take long, as the files of a long run do.
#[derive(Clone, Default)]
pub(super) struct LetIn(Arc<OnceLock<()>>);

impl LetIn {
    pub(super) fn set(&self) {
        self.0.get_or_init(|| ());
    }
}

impl Connected<IncomingStream<'_, Visitors>> for LetIn {
    fn connect_info(stream: IncomingStream<'_, Visitors>) -> Self {
        stream.io().let_in.clone()
    }
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
        (Visit { stream, end: Box::pin(sleep(self.patience)), let_in: LetIn::default(), _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Visit {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let visit = self.get_mut();
        let read = Pin::new(&mut visit.stream).poll_read(context, buffer);
        if read.is_pending() && visit.let_in.0.get().is_none() && visit.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
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
            let (mut guest, _) = visitors.accept().await;
            guest.let_in.set();
            assert_eq!(read(&mut silent).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            sleep(2 * visitors.patience).await;
            assert!(read(&mut guest).now_or_never().is_none(), "who was let in may stay");
            drop(guests);
        });
    }
}
