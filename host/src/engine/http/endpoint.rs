//! Where a server is.

use hyper::Uri;

/// A server and the path of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path of the completions interface.
    pub path: String,
    /// The `host` header.
    pub authority: String,
}

/// A URL that is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It cannot be read.
    #[error("{0} is no URL: write http://HOST:PORT, with a path where the server's is not /v1/completions")]
    Syntax(String),
    /// Its scheme is not spoken.
    #[error(
        "{url} has the scheme {scheme}, and this version speaks http only: put a proxy that ends TLS in front"
    )]
    Scheme {
        /// The URL.
        url: String,
        /// The scheme.
        scheme: String,
    },
    /// It carries a user or password, which would end up in reports.
    #[error(
        "the URL holds a user name or password: give a key in the environment instead (--api-key-env NAME)"
    )]
    Credentials,
}

impl Endpoint {
    /// Reads a URL. Without a path, or with `/v1`, the path is `/v1/completions`.
    ///
    /// # Errors
    /// When it cannot be used, with what to write instead.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let syntax = || EndpointError::Syntax(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| syntax())?;
        let authority = uri.authority().ok_or_else(syntax)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        match uri.scheme_str() {
            Some("http") => {}
            scheme => {
                return Err(EndpointError::Scheme {
                    url: url.to_owned(),
                    scheme: scheme.unwrap_or("?").to_owned(),
                });
            }
        }
        let path = match uri.path().trim_end_matches('/') {
            "" | "/v1" => "/v1/completions",
            path => path,
        };
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: path.to_owned(),
            authority: authority.as_str().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let read = |url| Endpoint::parse(url).map(|found| (found.host, found.port, found.path));
        let of = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(
            read("http://127.0.0.1:8000"),
            of("127.0.0.1", 8000, "/v1/completions")
        );
        assert_eq!(read("http://h/v1/"), of("h", 80, "/v1/completions"));
        assert_eq!(
            read("http://[::1]:9/openai/completions"),
            of("::1", 9, "/openai/completions")
        );
        assert!(matches!(read("https://h"), Err(EndpointError::Scheme { .. })));
        assert_eq!(read("http://user:secret@h"), Err(EndpointError::Credentials));
        for wrong in ["", "h", "/v1", "http://", "http://h:99999"] {
            assert!(
                matches!(
                    read(wrong),
                    Err(EndpointError::Syntax(_) | EndpointError::Scheme { .. })
                ),
                "{wrong}"
            );
        }
    }
}
