//! The person in front of the browser.

use std::sync::Mutex;

use futures_util::future::BoxFuture;
use helve_fetch::Url;

use super::super::Browser;
use super::http::send;

/// What a person does when a browser opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mood {
    #[default]
    Agrees,
    Declines,
    Ignores,
    /// First something comes back that this login did not ask for.
    IsAttacked,
    HasNoBrowser,
}

/// A person who needs no time.
#[derive(Default)]
pub(super) struct Person {
    pub(super) mood: Mutex<Mood>,
    pub(super) opened: Mutex<Vec<Url>>,
    /// Where the browser was sent back to, the last time.
    pub(super) back: Mutex<String>,
}

impl Person {
    pub(super) fn feels(&self, mood: Mood) {
        *self.mood.lock().expect("a mood") = mood;
    }

    pub(super) fn times(&self) -> usize {
        self.opened.lock().expect("a list").len()
    }

    /// The states of the logins before this one.
    fn earlier_states(&self) -> Vec<String> {
        let state = |url: &Url| url.query_pairs().find(|(name, _)| name == "state").expect("a state").1.into_owned();
        let mut states: Vec<_> = self.opened.lock().expect("a list").iter().map(state).collect();
        states.pop();
        states
    }
}

impl Browser for Person {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mood = *self.mood.lock().expect("a mood");
            self.opened.lock().expect("a list").push(url.clone());
            let field = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
            let (back, state) = (field("redirect_uri").expect("a way back"), field("state").expect("a state"));
            match mood {
                Mood::HasNoBrowser => return Err("there is no screen".to_owned()),
                Mood::Ignores => return Ok(()),
                Mood::Declines => {
                    let issuer = url.as_str().split("/authorize").next().expect("an issuer");
                    send("GET", &format!("{back}?error=access_denied&state={state}&iss={issuer}"), &[], "").await?;
                    return Ok(());
                }
                Mood::IsAttacked => {
                    let queries = ["", "?code=evil", "?code=evil&state=evil", "?error=access_denied", "?error=access_denied&state="];
                    let earlier = self.earlier_states().into_iter().map(|state| format!("?code=evil&state={state}"));
                    for query in queries.map(str::to_owned).into_iter().chain(earlier) {
                        assert_eq!(send("GET", &format!("{back}{query}"), &[], "").await?.status, 400, "{query}");
                    }
                }
                Mood::Agrees => {}
            }
            let reply = send("GET", url.as_str(), &[], "").await?;
            let location = reply.headers.iter().find(|(name, _)| *name == "location").ok_or("no way back")?.1.clone();
            self.back.lock().expect("an address").clone_from(&location);
            // Whoever waits may have heard enough before the page is read.
            let _ = send("GET", &location, &[], "").await;
            Ok(())
        })
    }
}
