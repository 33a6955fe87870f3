//! Which requests are answered: those with the token, from a browser that no other site's page has led here.
//!
//! Every user of the machine can connect to the loopback interface, and so can any page that a browser on it shows.
//! The token keeps out both. The checks of the host and of the origin keep out a page whose own name was made to lead
//! here (DNS rebinding), should it learn the token.

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::visitors::LetIn;

/// The content security policy: the page loads everything from here alone, and no other page may frame it.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                              media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Names of the loopback interface. Any port may follow, since a tunnel leads here from another one.
const OURS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The secret in the link: 128 random bits in hexadecimal.
#[derive(Debug, Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `path` begins with the token. The time that this takes does not tell how much of it was right.
    fn opens(&self, path: &str) -> bool {
        let given = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).unwrap_or_default();
        given.len() == self.0.len() && given.bytes().zip(self.0.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

/// Answers a request, or refuses it without telling what is here.
pub(super) async fn guard(State(token): State<Token>, ConnectInfo(visit): ConnectInfo<LetIn>, request: Request, next: Next) -> Response {
    let refusal = refusal(&token, &request);
    let mut response = match refusal {
        // Whoever is refused does not keep the connection: there are few.
        Some(status) => (status, [(header::CONNECTION, "close")]).into_response(),
        None => {
            visit.set();
            next.run(request).await
        }
    };
    let headers: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(token: &Token, request: &Request) -> Option<StatusCode> {
    if !comes_from_here(request.headers()) {
        return Some(StatusCode::FORBIDDEN);
    }
    if !token.opens(request.uri().path()) {
        return Some(StatusCode::NOT_FOUND);
    }
    (request.method() != Method::GET).then_some(StatusCode::METHOD_NOT_ALLOWED)
}

/// Whether the browser asked for this machine, by the host, on behalf of our page or of the user, by the origin.
fn comes_from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(host) = text(header::HOST).filter(|host| is_ours(host)) else { return false };
    text(header::ORIGIN).is_none_or(|origin| origin.strip_prefix("http://") == Some(host))
}

/// Whether `host`, perhaps with a port, is a name of the loopback interface.
fn is_ours(host: &str) -> bool {
    OURS.iter().any(|name| {
        host.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_interface_are_ours() {
        for name in ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "[::1]:65535"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["", "127.0.0.1.example.org", "localhost.example.org:80", "127.0.0.1:", "127.0.0.1:80@example.org", "10.0.0.1", "::1"] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn a_token_opens_its_own_paths_alone() {
        let token = Token("00ff".into());
        for path in ["/00ff/", "/00ff", "/00ff/runs"] {
            assert!(token.opens(path), "{path}");
        }
        for path in ["/", "/00fe/", "/00ff0/", "/runs/00ff", "//00ff/", "00ff/"] {
            assert!(!token.opens(path), "{path}");
        }
        assert_ne!(Token::random().as_str(), Token::random().as_str());
    }
}
