//! A socket that notes when bytes last came and went.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::Clock;

/// Times of the last read and write on a connection, in nanoseconds on the run's clock.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    pub(super) read_ns: Cell<u64>,
    pub(super) written_ns: Cell<u64>,
}

/// The socket.
#[derive(Debug)]
pub(super) struct Stamped {
    socket: TcpStream,
    clock: Clock,
    stamps: Rc<Stamps>,
}

impl Stamped {
    pub(super) fn new(socket: TcpStream, clock: Clock) -> (Self, Rc<Stamps>) {
        let stamps = Rc::new(Stamps::default());
        let stamped = Self {
            socket,
            clock,
            stamps: Rc::clone(&stamps),
        };
        (stamped, stamps)
    }

    fn wrote(&self, bytes: io::Result<usize>) -> io::Result<usize> {
        self.stamps.written_ns.set(self.clock.now_ns());
        bytes
    }
}

impl AsyncRead for Stamped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.socket).poll_read(cx, buf));
        self.stamps.read_ns.set(self.clock.now_ns());
        Poll::Ready(read)
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes));
        Poll::Ready(self.wrote(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, bytes));
        Poll::Ready(self.wrote(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
