//! Requests of commands to the API of a daemon, and the replies.

use std::io;

use gateway::api::{ApiError, ApiReply, ApiRequest};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    hello::{DaemonReply, HELLO_WAIT, Purpose, send_line},
    place::DaemonFolder,
    reach::{NoDaemon, Route, reach},
    running::connect_to_all,
    socket::Stream,
};

/// The reply to a request, or its error.
pub type ApiResult = Result<ApiReply, ApiError>;

/// The signal to begin. A client that reads [`DaemonReply::Running`] may read past that line, so no data may
/// follow it before this.
const GO: &[u8] = b"\n";

/// Sends a request to the daemon of this route, which is started if there is none. `None`: the daemon ended
/// before it replied.
pub async fn ask_or_start(
    route: &Route,
    request: &ApiRequest,
) -> Result<Option<ApiResult>, NoDaemon> {
    let reached = reach(route, &purpose_of(request, true)).await?;
    match reached.answer {
        DaemonReply::Running => Ok(receive_reply(reached.stream).await.ok()),
        DaemonReply::Refused(report) => Err(NoDaemon::Reported(report)),
        answer => Err(anyhow::anyhow!("the daemon answered with {answer:?}").into()),
    }
}

/// Sends a request to a daemon that runs; none is started. `None`: no daemon of our build runs.
pub async fn ask_running(
    place: &DaemonFolder,
    request: &ApiRequest,
) -> io::Result<Option<ApiResult>> {
    for daemon in connect_to_all(place) {
        let greeted = daemon?.greet(purpose_of(request, false)).await?;
        if let Some((stream, DaemonReply::Running)) = greeted {
            return receive_reply(stream).await.map(Some);
        }
    }
    Ok(None)
}

fn purpose_of(request: &ApiRequest, replaces: bool) -> Purpose {
    Purpose::Api {
        cwd: std::env::current_dir().ok(),
        variables: fleet::Variables::of_process(),
        replaces,
        request: request.clone(),
    }
}

/// Reads a reply, which is one line of any length.
async fn receive_reply(mut stream: Stream) -> io::Result<ApiResult> {
    stream.write_all(GO).await?;
    let mut line = Vec::new();
    stream.read_to_end(&mut line).await?;
    Ok(serde_json::from_slice(&line)?)
}

/// Answers a request; it is cancelled when its connection closes.
pub(crate) async fn answer(
    mut stream: Stream,
    run: impl AsyncFnOnce(CancellationToken) -> ApiResult,
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
    send_line(&mut stream, &reply).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use crate::socket::Stream;
    use gateway::api::ApiReply;

    use super::{GO, answer, receive_reply};
    use crate::hello::{DaemonReply, receive_line};

    fn text() -> String {
        "ä\n{\"done\": 1}\n".repeat(100_000)
    }

    fn reply() -> ApiReply {
        ApiReply::Done(text())
    }

    #[tokio::test]
    async fn a_reply_arrives_as_it_was_given() {
        let (here, mut there) = Stream::pair().unwrap();
        let answering = tokio::spawn(answer(here, async |_| Ok(reply())));
        let heard: Option<DaemonReply> = receive_line(&mut there).await.unwrap();
        assert!(matches!(heard, Some(DaemonReply::Running)));
        let received = receive_reply(there).await.unwrap();
        assert!(matches!(received, Ok(ApiReply::Done(it)) if it == text()));
        answering.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_request_whose_command_is_gone_is_cancelled() {
        let (here, mut there) = Stream::pair().unwrap();
        let answering = tokio::spawn(answer(here, async |gone| {
            gone.cancelled().await;
            Ok(reply())
        }));
        tokio::io::AsyncWriteExt::write_all(&mut there, GO)
            .await
            .unwrap();
        drop(there);
        assert!(answering.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_reply_that_breaks_off_is_an_error() {
        let (here, mut there) = Stream::pair().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut there, b"{\"Ok\":{\"done\":\"sho")
            .await
            .unwrap();
        drop(there);
        assert!(receive_reply(here).await.is_err());
    }
}
