//! A tab with the web page open: requests to its API, each answer held against `openapi.json`.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1, header::HeaderMap};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{client::DEADLINE, house::House};

/// The interval at which a page that is not served yet is tried.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

/// An open tab.
#[derive(Debug, Clone)]
pub struct Tab {
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// The code of its address.
    pub code: String,
    token: Option<String>,
    openapi: Value,
}

/// The lines of its stream.
#[derive(Debug)]
pub struct Live {
    body: Incoming,
    rest: BytesMut,
    validator: jsonschema::Validator,
    /// The state, from the snapshot and the changes that were read.
    pub state: Value,
    n: u64,
}

/// A response whose body was read.
#[derive(Debug)]
pub struct PageAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub json: Value,
}

impl Tab {
    /// Asks for an address, and does not use it yet.
    pub async fn address(house: &House) -> Self {
        let output = house.cli(["web", "--no-browser"]).await;
        let url = output.ended(0).trim();
        let (page, code) = url.split_once("/#").expect("the code is in the fragment");
        Self {
            host: page.strip_prefix("http://").expect("it is HTTP").to_owned(),
            code: code.to_owned(),
            token: None,
            openapi: Value::Null,
        }
    }

    /// Opens the page: trades the code for a token, and reads the description of the API.
    pub async fn open(house: &House) -> Self {
        let mut tab = Self::address(house).await;
        let code = json!({ "code": tab.code });
        let session = tab.send("POST", "/api/v1/session", Some(code), &[]).await;
        assert_eq!(session.status, 200, "{session:?}");
        tab.token = session.json["token"].as_str().map(str::to_owned);
        tab.openapi = tab.get("/api/v1/openapi.json").await;
        tab.check("POST", "/api/v1/session", &session);
        tab
    }

    /// Returns the tab with another token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Returns its token.
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Returns every route as `METHOD PATH`.
    pub fn routes(&self) -> Vec<String> {
        let paths = self.openapi["paths"].as_object().expect("it has paths");
        let routes = paths.iter().flat_map(|(path, operations)| {
            let methods = operations.as_object().expect("a path has methods").keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        });
        routes.collect()
    }

    /// Reads a route, which must answer with 200.
    pub async fn get(&self, path: &str) -> Value {
        let answer = self.send("GET", path, None, &[]).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        self.check("GET", path, &answer);
        answer.json
    }

    /// Posts to a route, which must answer with this status.
    pub async fn post(&self, path: &str, body: Value, status: u16) -> Value {
        let answer = self.send("POST", path, Some(body), &[]).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        self.check("POST", path, &answer);
        answer.json
    }

    /// Returns the route of a request, as [`Self::routes`] has it.
    pub fn find_route(&self, method: &str, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        let fits = |route: &String| {
            let pattern = route.strip_prefix(method).unwrap_or_default().trim();
            let (wanted, given) = (pattern.split('/'), path.split('/'));
            let is_equal =
                |(wanted, given): (&str, &str)| wanted.starts_with('{') || wanted == given;
            wanted.clone().count() == given.clone().count() && wanted.zip(given).all(is_equal)
        };
        let route = self.routes().into_iter().find(fits);
        route.unwrap_or_else(|| panic!("{method} {path} is not described"))
    }

    /// Holds an answer against the description of its route.
    pub fn check(&self, method: &str, path: &str, answer: &PageAnswer) {
        if self.openapi.is_null() {
            return;
        }
        let status = match answer.status {
            200 => "200",
            _ => "default",
        };
        let validator = self.validator(&self.find_route(method, path), status, JSON);
        check_with(&validator, &answer.json);
    }

    /// Makes the validator of the answers of a route.
    fn validator(&self, route: &str, status: &str, kind: &str) -> jsonschema::Validator {
        let (method, pattern) = route.split_once(' ').expect("it has a method");
        let operation = &self.openapi["paths"][pattern][method.to_lowercase()];
        let schema = &operation["responses"][status]["content"][kind]["schema"];
        assert!(schema.is_object(), "{route}");
        let schema = json!({ "allOf": [schema], "components": self.openapi["components"] });
        jsonschema::draft202012::new(&schema).expect("the schema is valid")
    }

    /// Follows the state.
    pub async fn live(&self) -> Live {
        let response = self
            .request("GET", "/api/v1/live", String::new(), &[])
            .await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], LINES);
        let mut live = Live {
            body: response.into_body(),
            rest: BytesMut::new(),
            validator: self.validator("GET /api/v1/live", "200", LINES),
            state: Value::Null,
            n: 0,
        };
        live.read().await;
        assert!(live.state.is_object());
        live
    }

    /// Sends a request with the headers of a browser, of which `headers` replaces some; an empty value
    /// removes one.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> PageAnswer {
        let body = body.map(|it| it.to_string()).unwrap_or_default();
        self.send_text(method, path, body, headers).await
    }

    /// Does the same with a body of any text.
    pub async fn send_text(
        &self,
        method: &str,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> PageAnswer {
        let answered = async {
            let response = self.request(method, path, body, headers).await;
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("the body arrives").to_bytes();
            PageAnswer {
                status: head.status.as_u16(),
                headers: head.headers,
                json: serde_json::from_slice(&body).unwrap_or_default(),
            }
        };
        timeout(DEADLINE, answered).await.expect("the page answers")
    }

    /// Sends a request once somebody listens at the address.
    pub async fn send_when_served(&self, method: &str, path: &str) -> PageAnswer {
        let listening = async {
            while TcpStream::connect(&self.host).await.is_err() {
                sleep(LOOK_EVERY).await;
            }
        };
        let listening = timeout(DEADLINE, listening).await;
        listening.expect("the page is served at the same address");
        self.send(method, path, None, &[]).await
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Response<Incoming> {
        let origin = format!("http://{}", self.host);
        let bearer = self.token.as_ref().map(|it| format!("Bearer {it}"));
        let mut all = vec![
            ("host", self.host.as_str()),
            ("sec-fetch-site", "same-origin"),
        ];
        all.extend(bearer.iter().map(|it| ("authorization", it.as_str())));
        if method != "GET" {
            all.extend([
                ("origin", origin.as_str()),
                ("content-type", "application/json"),
            ]);
        }
        all.retain(|(name, _)| headers.iter().all(|(other, _)| name != other));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in all {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.expect("the request is valid");
        let stream = TcpStream::connect(&self.host)
            .await
            .expect("the page listens");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .expect("it speaks HTTP");
        tokio::spawn(connection);
        sender
            .send_request(request)
            .await
            .expect("the page answers")
    }
}

fn check_with(validator: &jsonschema::Validator, answer: &Value) {
    let errors = validator.iter_errors(answer);
    let errors: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{answer:#}: {errors:#?}");
}

impl Live {
    /// Reads changes until the state fulfils the condition.
    pub async fn until(&mut self, is_so: impl Fn(&Value) -> bool) {
        let reading = async {
            while !is_so(&self.state) {
                self.read().await;
            }
        };
        let read = timeout(DEADLINE, reading).await;
        read.unwrap_or_else(|_| panic!("the state stays {:#}", self.state));
    }

    /// Reads the last line, after any changes.
    pub async fn end(&mut self) -> Value {
        let reading = async {
            loop {
                let message = self.line().await;
                if message["type"] == "end" {
                    return message;
                }
            }
        };
        timeout(DEADLINE, reading).await.expect("the stream ends")
    }

    async fn read(&mut self) {
        let message = self.line().await;
        match message["type"].as_str() {
            Some("snapshot") => self.state = message["state"].clone(),
            Some("change") => {
                assert_eq!(message["n"], self.n + 1, "no change is missing");
                for change in message["changes"].as_array().expect("it has changes") {
                    let [collection, key] = [&change["at"][0], &change["at"][1]];
                    let [collection, key] = [collection, key].map(|it| it.as_str().expect("a key"));
                    let rows = self.state[collection]
                        .as_object_mut()
                        .expect("a collection");
                    if change["value"].is_null() {
                        rows.remove(key);
                    } else {
                        rows.insert(key.to_owned(), change["value"].clone());
                    }
                }
            }
            _ => {}
        }
        self.n = message["n"].as_u64().unwrap_or(self.n);
    }

    async fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end + 1);
                let line = serde_json::from_slice(&line).expect("a line is JSON");
                check_with(&self.validator, &line);
                return line;
            }
            let frame = self.body.frame().await.expect("the stream goes on");
            let frame = frame.expect("the stream is whole");
            self.rest.extend(frame.into_data().unwrap_or_default());
        }
    }
}
