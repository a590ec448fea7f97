#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use excerpt::{Cut, Rooms, TextKind, TextPiece};
use tool::ClientId;

use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{Draft, FAILURES_MAX, Handle, HandleError, Parts, ResultStore, TextHead, Writing};
use crate::settings::ResultSettings;

fn store(keep_mib: u64) -> (ResultStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = ResultSettings {
        max_tokens: 1_000,
        keep_hours: 24,
        keep_mib,
    };
    (ResultStore::new(folder.path(), &limits), folder)
}

fn client(name: &str) -> ClientId {
    ClientId {
        connection: None,
        folder: None,
        name: Arc::from(name),
        caller: None,
    }
}

fn draft(text: &str) -> Draft {
    let head = TextHead {
        bytes: text.len(),
        kind: TextKind::Text,
        is_json: false,
    };
    let half = text.len() / 2;
    let ends = [half, text.len()];
    Draft {
        items: 1,
        owner: Some(client("ada")),
        max_tokens: 1_000,
        texts: vec![(head, text.to_owned())],
        frame: vec![
            r#"{"content":[{"type":"text","text":"#.to_owned(),
            "}]}".to_owned(),
        ],
        parts: Parts::Cut(ends.map(|end| Cut { end, tokens: 1 }).to_vec()),
    }
}

async fn keep(store: &ResultStore, text: &str) -> Handle {
    let handle = store
        .keep(draft(text))
        .await
        .expect("the result can be kept");
    store.finish().await;
    handle
}

fn file(folder: &tempfile::TempDir, handle: &Handle) -> PathBuf {
    folder.path().join(format!("results/{handle}.result"))
}

fn make_old(path: &PathBuf, hours: u64) {
    let file = fs::File::options().append(true).open(path).expect("there");
    let then = SystemTime::now() - Duration::from_hours(hours);
    file.set_modified(then).expect("the file is writable");
}

/// Writes the file of a result that the next sweep removes.
fn leave_expired(folder: &tempfile::TempDir) -> PathBuf {
    let left = folder.path().join("results/r0123456789abcdef.result");
    fs::write(&left, "{}").expect("writable");
    make_old(&left, 25);
    left
}

#[tokio::test]
async fn a_result_is_kept_privately_and_read_back() {
    let (store, folder) = store(1);
    let handle = keep(&store, "äone two").await;
    #[cfg(unix)]
    for (path, mode) in [
        (file(&folder, &handle), 0o600),
        (folder.path().join("results"), 0o700),
    ] {
        let about = fs::metadata(path).expect("it exists");
        assert_eq!(about.permissions().mode() & 0o777, mode);
    }

    let mut kept = store
        .open(handle.as_str(), Some(&client("ada")))
        .await
        .expect("kept");
    assert_eq!(kept.read(1..3).expect("readable"), "äo");
    assert_eq!(kept.part(2), Some(4..9));
    assert_eq!((kept.part(0), kept.part(3)), (None, None));
    let mut json = Vec::new();
    kept.write_json(&mut json)
        .expect("a vector can be written to");
    let expected = r#"{"content":[{"type":"text","text":"äone two"}]}"#;
    assert_eq!(String::from_utf8(json).expect("JSON"), expected);
    drop(folder);
}

#[tokio::test]
async fn a_result_that_was_not_cut_is_cut_by_its_reader() {
    let (store, folder) = store(1);
    let text = "A sentence about nothing. ".repeat(1_000);
    let rooms = Rooms {
        first: 100,
        others: 200,
    };
    let expected = excerpt::split(&[TextPiece::plain(&text)], rooms);
    let draft = Draft {
        parts: Parts::Uncut(rooms),
        ..draft(&text)
    };
    let handle = store.keep(draft).await.expect("the result can be kept");
    store.finish().await;
    let restarted = ResultStore::new(folder.path(), &ResultSettings::default());
    for store in [&store, &store, &restarted] {
        let opened = store.open(handle.as_str(), None).await;
        let mut kept = opened.expect("kept");
        assert_eq!(kept.count_parts(), expected.len());
        assert_eq!(kept.part(1), Some(0..expected[0].end));
        let parts = (1..=kept.count_parts()).map(|number| {
            let part = kept.part(number).expect("the part exists");
            kept.read(part).expect("readable")
        });
        assert_eq!(parts.collect::<String>(), text);
    }
}

#[tokio::test]
async fn a_handle_belongs_to_its_client() {
    let (store, _folder) = store(1);
    let handle = keep(&store, "secret").await;
    let gone = HandleError::Gone;
    assert_eq!(
        store
            .open(handle.as_str(), Some(&client("bob")))
            .await
            .err(),
        Some(gone)
    );
    assert!(store.open(handle.as_str(), None).await.is_ok());
    let shouted = format!(" {} ", handle.as_str().to_uppercase());
    assert!(store.open(&shouted, Some(&client("ada"))).await.is_ok());
}

#[tokio::test]
async fn the_oldest_go_when_the_room_is_used_up() {
    let (store, folder) = store(1);
    let big = "x".repeat(700_000);
    let first = keep(&store, &big).await;
    make_old(&file(&folder, &first), 1);
    assert!(
        store
            .open(first.as_str(), Some(&client("ada")))
            .await
            .is_ok()
    );
    let second = keep(&store, &big).await;
    let ada = client("ada");
    let error = store.open(first.as_str(), Some(&ada)).await.err();
    assert_eq!(error, Some(HandleError::Gone));
    assert!(store.open(second.as_str(), Some(&ada)).await.is_ok());
}

#[tokio::test]
async fn what_went_costs_nothing_however_much_it_is() {
    let (store, folder) = store(0);
    let results = folder.path().join("results");
    let entries = |folder: &PathBuf| fs::read_dir(folder).expect("the folder exists").count();
    let mut handles = Vec::new();
    for number in 0..100 {
        handles.push(keep(&store, "x").await);
        // Files of the same moment have no order.
        make_old(&file(&folder, &handles[number]), 1);
    }
    let newest = keep(&store, "x").await;
    assert!(
        entries(&results) <= 3,
        "a sweep reads {} files",
        entries(&results)
    );
    let ada = client("ada");
    assert!(store.open(newest.as_str(), Some(&ada)).await.is_ok());
}

#[tokio::test]
async fn what_is_too_old_is_gone_before_it_is_swept() {
    let (store, folder) = store(1);
    let handle = keep(&store, "x").await;
    make_old(&file(&folder, &handle), 25);
    let error = store
        .open(handle.as_str(), Some(&client("ada")))
        .await
        .err();
    assert_eq!(error, Some(HandleError::Gone));
}

#[tokio::test]
async fn the_newest_goes_when_it_is_too_old() {
    let (store, folder) = store(1);
    let handle = keep(&store, "x").await;
    make_old(&file(&folder, &handle), 25);
    store.sweep().await;
    assert!(!file(&folder, &handle).exists());
}

#[tokio::test(start_paused = true)]
async fn a_store_to_which_nothing_comes_is_swept_again_and_again() {
    let (store, folder) = store(1);
    let handle = keep(&store, "x").await;
    let kept = file(&folder, &handle);
    let sweeping = tokio::spawn(store.clone().keep_swept());
    tokio::time::sleep(super::SWEEP_EVERY / 2).await;
    assert!(kept.exists());
    make_old(&kept, 25);
    while kept.exists() {
        tokio::time::sleep(super::SWEEP_EVERY).await;
    }
    sweeping.abort();
}

#[tokio::test]
async fn a_damaged_file_says_so() {
    let (store, folder) = store(1);
    let handle = keep(&store, "one two three").await;
    let path = file(&folder, &handle);
    let whole = fs::read(&path).expect("there");
    for at in [whole.len() - 1, whole.len() / 2, 3] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).expect("the file is writable");
        let error = store
            .open(handle.as_str(), Some(&client("ada")))
            .await
            .err();
        assert!(matches!(error, Some(HandleError::Damaged(_))), "{error:?}");
        fs::write(&path, &whole[..at]).expect("the file is writable");
        let error = store
            .open(handle.as_str(), Some(&client("ada")))
            .await
            .err();
        assert!(matches!(error, Some(HandleError::Damaged(_))), "{error:?}");
    }
}

#[tokio::test]
async fn where_nothing_can_be_written_that_is_said_at_once_and_later() {
    let (store, folder) = store(1);
    fs::write(folder.path().join("results"), "no folder").expect("writable");
    // A busy machine may not get to it at once.
    let error = loop {
        if let Err(error) = store.keep(draft("x")).await {
            break error;
        }
    };
    assert_eq!(error, "not a directory");
}

#[tokio::test]
async fn of_many_that_could_not_be_written_the_last_say_so() {
    let (store, _folder) = store(1);
    let why = "storage full";
    let fail = || {
        let handle = Handle::random().unwrap();
        let (_, state) = watch::channel(Writing::Failed(why.to_owned()));
        store.writers().states.insert(handle.clone(), state);
        drop(store.writers().forget(&handle));
        handle
    };
    let handles: Vec<Handle> = (0..=FAILURES_MAX).map(|_| fail()).collect();
    let (first, rest) = handles.split_first().unwrap();
    for handle in [&rest[0], rest.last().unwrap()] {
        let opened = store.open(handle.as_str(), None).await;
        assert!(
            matches!(&opened, Err(HandleError::NotWritten(said)) if said == why),
            "{opened:?}"
        );
    }
    let opened = store.open(first.as_str(), None).await;
    assert!(matches!(opened, Err(HandleError::Gone)));
    assert_eq!(store.writers().states.len(), FAILURES_MAX);
}

#[tokio::test]
async fn nothing_is_kept_under_what_is_no_handle() {
    let (store, folder) = store(1);
    fs::write(folder.path().join("secret.result"), "{}").expect("writable");
    for handle in [
        "",
        "r",
        "../secret",
        "r0123456789abcdef",
        "r../secret0000000",
    ] {
        let error = store.open(handle, None).await.err();
        assert_eq!(error, Some(HandleError::Gone), "{handle}");
    }
}

#[tokio::test]
async fn what_a_writer_that_died_has_left_goes() {
    let (store, folder) = store(1);
    keep(&store, "x").await;
    let left = folder.path().join("results/.unfinished-abc");
    fs::write(&left, "half").expect("writable");
    store.sweep().await;
    assert!(left.exists(), "the file may still be in use");
    make_old(&left, 2);
    store.sweep().await;
    assert!(!left.exists());
}

/// Scanning many results after each new one would cost more than keeping it.
#[tokio::test]
async fn as_long_as_there_is_room_nobody_looks_for_what_may_go() {
    let (store, folder) = store(1);
    keep(&store, "x").await;
    let left = leave_expired(&folder);
    keep(&store, "x").await;
    assert!(left.exists(), "a sweep ran although there was room");
    let big = "x".repeat(700_000);
    keep(&store, &big).await;
    keep(&store, &big).await;
    assert!(!left.exists(), "no room was made");
}

#[tokio::test]
async fn a_write_starts_no_sweep_while_another_runs() {
    let (store, folder) = store(1);
    keep(&store, "x").await;
    let left = leave_expired(&folder);
    let big = "x".repeat(700_000);
    let running = store.0.sweep_turn.acquire().await.expect("it is open");
    keep(&store, &big).await;
    keep(&store, &big).await;
    assert!(left.exists(), "a second sweep ran");
    drop(running);
    keep(&store, "x").await;
    assert!(!left.exists(), "no room was made");
}

/// Another process's store on the same folder.
fn other_store(folder: &tempfile::TempDir) -> ResultStore {
    let limits = ResultSettings {
        max_tokens: 1_000,
        keep_hours: 24,
        keep_mib: 1,
    };
    ResultStore::new(folder.path(), &limits)
}

/// Waits until a reader, too, has opened the announcement of a writer, or has ended.
async fn until_awaited<T>(folder: &tempfile::TempDir, handle: &Handle, reading: &JoinHandle<T>) {
    let folder = fs::canonicalize(folder.path()).expect("it exists");
    let announcement = folder.join(format!("results/.unfinished-{handle}.lock"));
    let count_openings = || {
        let open = fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten();
        let targets = open.filter_map(|it| fs::read_link(it.path()).ok());
        targets.filter(|it| *it == announcement).count()
    };
    while cfg!(target_os = "linux") && count_openings() < 2 && !reading.is_finished() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn readers_in_this_process_and_in_another_wait_for_the_writer() {
    let (store, folder) = store(1);
    let busy = store.0.writing_turns.acquire_many(4).await.expect("open");
    let handle = store.keep(draft("one two")).await.expect("it can be kept");
    let name = handle.to_string();
    let mut own = Box::pin(store.read_file(&name));
    // The clock stands still while a thread reads the disk, so only a reader that waits times out.
    let waiting = timeout(Duration::from_secs(1), &mut own).await;
    assert!(waiting.is_err(), "it did not wait");
    let reader = other_store(&folder);
    let reading = tokio::spawn({
        let handle = handle.to_string();
        async move { reader.open(&handle, Some(&client("ada"))).await.map(drop) }
    });
    until_awaited(&folder, &handle, &reading).await;
    assert!(!file(&folder, &handle).exists());
    drop(busy);
    reading.await.expect("no panic").expect("it waited");
    assert!(own.await.is_some(), "another machine waits too");
    store.finish().await;
    let left = fs::read_dir(folder.path().join("results")).expect("it exists");
    assert_eq!(left.count(), 1, "only the result stays");
}

#[tokio::test]
async fn a_writer_that_died_keeps_no_reader_waiting() {
    let (store, folder) = store(1);
    keep(&store, "one two").await;
    let handle = Handle::random().expect("random bytes");
    let lock = store.0.folder.announce(&handle).expect("a lock");
    // The end of a process unlocks the file, and leaves it.
    drop(lock);
    let opened = other_store(&folder).open(handle.as_str(), None).await;
    assert!(matches!(opened, Err(HandleError::Gone)));
    let left = fs::read_dir(folder.path().join("results")).expect("it exists");
    assert_eq!(left.count(), 1);
}
