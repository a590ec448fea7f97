//! A listening socket that one process hands to another over the daemon's own socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::TcpListener,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use tokio::io::Interest;

use super::unix::{Stream, is_listening};

/// Sent with the socket: a descriptor cannot be sent without data.
const BYTE: [u8; 1] = *b"L";

/// No child inherits the socket. macOS can say so only after it was received.
#[cfg(not(target_os = "macos"))]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(target_os = "macos")]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// True: a socket can be handed over.
pub(crate) const PASSES_LISTENERS: bool = true;

/// Hands over a copy; ours stays open.
pub(crate) async fn send_listener(stream: &Stream, listener: &TcpListener) -> io::Result<()> {
    let sending = stream.async_io(Interest::WRITABLE, || {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sockets = [listener.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&sockets));
        sendmsg(
            stream,
            &[IoSlice::new(&BYTE)],
            &mut control,
            SendFlags::empty(),
        )?;
        Ok(())
    });
    sending.await
}

/// Receives the socket sent by [`send_listener`]. Fails also if it is not a listening TCP socket.
pub(crate) async fn receive_listener(stream: &Stream) -> io::Result<TcpListener> {
    let receiving = stream.async_io(Interest::READABLE, || {
        let mut byte = [0; 1];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut byte)];
        recvmsg(stream, &mut parts, &mut control, RECEIVING)?;
        let sockets = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        });
        Ok(sockets.flatten().next())
    });
    let socket: OwnedFd = receiving.await?.ok_or(io::ErrorKind::InvalidData)?;
    #[cfg(target_os = "macos")]
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    if !is_listening(&socket) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let listener = TcpListener::from(socket);
    listener.local_addr()?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn who_connects_while_nobody_accepts_is_served_by_the_next() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = held.local_addr().unwrap();
        for _ in 0..2 {
            // No process accepts now.
            let client = TcpStream::connect(address).unwrap();
            let (holder, daemon) = Stream::pair().unwrap();
            let (sent, received) =
                tokio::join!(send_listener(&holder, &held), receive_listener(&daemon));
            sent.unwrap();
            let (served, _) = tokio::net::TcpListener::from_std(received.unwrap())
                .unwrap()
                .accept()
                .await
                .unwrap();
            assert_eq!(served.peer_addr().unwrap(), client.local_addr().unwrap());
        }
        let (holder, daemon) = Stream::pair().unwrap();
        drop(holder);
        assert!(receive_listener(&daemon).await.is_err());
    }
}
