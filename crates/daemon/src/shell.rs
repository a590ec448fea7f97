//! Commands that the daemon executes: the requests of the command line, and the replies.

use std::io;

use gateway::shell::{ShellReply, ShellRequest};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    hello::{DaemonReply, HELLO_WAIT, Purpose, send_line},
    page::ApiRequest,
    place::DaemonFolder,
    reach::{NoDaemon, Route, reach},
    running::connect_to_all,
    socket::Stream,
};

/// The line before the texts of an answer, which may be long and hold anything.
#[derive(Debug, Serialize, Deserialize)]
struct ReplyHead {
    data_bytes: usize,
    told_bytes: usize,
    is_hit: bool,
}

/// The signal to run a command. A client that reads [`DaemonReply::Running`] may read past that line, so
/// no data may follow it before this.
const GO: &[u8] = b"\n";

/// Has the daemon of this route answer a command; it is started if there is none. `None`: the daemon ended
/// before it answered.
pub async fn run_in_daemon(
    route: &Route,
    request: ShellRequest,
) -> Result<Option<ShellReply>, NoDaemon> {
    let purpose = Purpose::Shell {
        cwd: std::env::current_dir().ok(),
        variables: fleet::Variables::of_process(),
        request,
    };
    let reached = reach(route, &purpose).await?;
    match reached.answer {
        DaemonReply::Running => {}
        DaemonReply::Refused(report) => return Err(NoDaemon::Reported(report)),
        answer => return Err(anyhow::anyhow!("the daemon answered with {answer:?}").into()),
    }
    Ok(receive_reply(reached.stream).await.ok())
}

/// Sends a request to the API of a daemon that runs; none is started. `None`: no daemon of our build runs.
pub async fn ask_api(place: &DaemonFolder, request: &ApiRequest) -> io::Result<Option<ShellReply>> {
    for daemon in connect_to_all(place) {
        let greeted = daemon?.greet(Purpose::Api(request.clone())).await?;
        if let Some((stream, DaemonReply::Running)) = greeted {
            return receive_reply(stream).await.map(Some);
        }
    }
    Ok(None)
}

async fn receive_reply(mut stream: Stream) -> io::Result<ShellReply> {
    stream.write_all(GO).await?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let head: ReplyHead = serde_json::from_str(&line)?;
    let mut text = async |bytes: usize| {
        let mut text = Vec::new();
        (&mut stream)
            .take(bytes as u64)
            .read_to_end(&mut text)
            .await?;
        if text.len() < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        String::from_utf8(text).map_err(io::Error::other)
    };
    let data = text(head.data_bytes).await?;
    let told = text(head.told_bytes).await?;
    Ok(ShellReply {
        data,
        told,
        is_hit: head.is_hit,
    })
}

/// Answers a command; it is cancelled when its connection closes.
pub(crate) async fn answer(
    mut stream: Stream,
    run: impl AsyncFnOnce(CancellationToken) -> ShellReply,
) -> io::Result<()> {
    send_line(&mut stream, &DaemonReply::Running).await?;
    let mut go = [0; GO.len()];
    timeout(HELLO_WAIT, stream.read_exact(&mut go)).await??;
    let gone = CancellationToken::new();
    let reply = {
        let mut rest = [0; 1];
        let mut running = std::pin::pin!(run(gone.clone()));
        tokio::select! {
            reply = &mut running => reply,
            // Nothing follows the request: a read that ends is the end of the connection.
            _ = stream.read(&mut rest) => {
                gone.cancel();
                running.await
            }
        }
    };
    let head = ReplyHead {
        data_bytes: reply.data.len(),
        told_bytes: reply.told.len(),
        is_hit: reply.is_hit,
    };
    send_line(&mut stream, &head).await?;
    stream.write_all(reply.data.as_bytes()).await?;
    stream.write_all(reply.told.as_bytes()).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use crate::socket::Stream;
    use gateway::shell::ShellReply;

    use super::{GO, answer, receive_reply};
    use crate::hello::{DaemonReply, receive_line};

    fn reply() -> ShellReply {
        ShellReply {
            data: "ä\n{\"data_bytes\": 1}\n".repeat(100_000),
            told: "note".to_owned(),
            is_hit: true,
        }
    }

    #[tokio::test]
    async fn an_answer_arrives_as_it_was_given() {
        let (here, mut there) = Stream::pair().unwrap();
        let answering = tokio::spawn(answer(here, async |_| reply()));
        let heard: Option<DaemonReply> = receive_line(&mut there).await.unwrap();
        assert!(matches!(heard, Some(DaemonReply::Running)));
        assert_eq!(receive_reply(there).await.unwrap(), reply());
        answering.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_command_whose_person_is_gone_is_cancelled() {
        let (here, mut there) = Stream::pair().unwrap();
        let answering = tokio::spawn(answer(here, async |gone| {
            gone.cancelled().await;
            reply()
        }));
        tokio::io::AsyncWriteExt::write_all(&mut there, GO)
            .await
            .unwrap();
        drop(there);
        assert!(answering.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_none() {
        let (here, mut there) = Stream::pair().unwrap();
        tokio::io::AsyncWriteExt::write_all(
            &mut there,
            b"{\"data_bytes\":9,\"told_bytes\":0,\"is_hit\":true}\nshort",
        )
        .await
        .unwrap();
        drop(there);
        assert!(receive_reply(here).await.is_err());
    }
}
