//! Parses the text after `sh -c` to find the files that it names. The parser accepts more than a shell does, because a file that is found
//! in error does no harm.

/// The words of a simple command, including the files from which it redirects its input.
pub(super) type SimpleCommand = Vec<String>;

/// Keywords that may precede a command.
const KEYWORDS: [&str; 14] =
    ["!", "builtin", "command", "coproc", "do", "elif", "else", "exec", "if", "then", "time", "until", "while", "{"];

/// Returns the simple commands in a shell script, without the files to which they redirect their output.
pub(super) fn commands(text: &str) -> Vec<SimpleCommand> {
    let mut reader = Reader::default();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => reader.quoted(characters.by_ref().take_while(|next| *next != '\'')),
            '"' => {
                let mut inside = String::new();
                while let Some(next) = characters.next().filter(|next| *next != '"') {
                    inside.push(if next == '\\' { characters.next().unwrap_or(next) } else { next });
                }
                reader.quoted(inside.chars());
            }
            '\\' => reader.quoted(characters.next().filter(|next| *next != '\n').into_iter()),
            '>' => {
                // The word before `>` may be a file descriptor.
                reader.end_word();
                reader.writes_next = true;
            }
            // `>&2`, `>|file`
            '&' | '|' if reader.writes_next && reader.word.is_none() => {}
            ';' | '&' | '|' | '\n' | '(' | ')' | '`' => reader.end_command(),
            '<' => reader.end_word(),
            '#' if reader.word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            space if space.is_whitespace() => reader.end_word(),
            other => reader.quoted(std::iter::once(other)),
        }
    }
    reader.end_command();
    reader.commands
}

#[derive(Default)]
struct Reader {
    commands: Vec<SimpleCommand>,
    command: SimpleCommand,
    word: Option<String>,
    /// Whether the next word is the target of an output redirection.
    writes_next: bool,
}

impl Reader {
    fn quoted(&mut self, characters: impl Iterator<Item = char>) {
        self.word.get_or_insert_default().extend(characters);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.writes_next) || self.command.is_empty() && KEYWORDS.contains(&word.as_str()) {
            return;
        }
        self.command.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.writes_next = false;
        if !self.command.is_empty() {
            self.commands.push(std::mem::take(&mut self.command));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_found_and_what_is_written_is_not() {
        let read = |text: &str| commands(text).iter().map(|command| command.join(" ")).collect::<Vec<_>>();
        assert_eq!(read(". ./x.sh && sort < data.csv > out.csv 2>&1 | tee log"), [". ./x.sh", "sort data.csv 2", "tee log"]);
        assert_eq!(read("if [ -f a ]; then 'b c.sh'; fi # ./d.sh\n\"e\\\"f\" g\\ h"), ["[ -f a ]", "b c.sh", "fi", "e\"f g h"]);
        assert_eq!(read("echo $(./x.sh) `y`"), ["echo $", "./x.sh", "y"]);
        assert_eq!(read("echo $$ > nap.pid; exec sleep 30"), ["echo $$", "sleep 30"]);
        assert_eq!(read(""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-c'\"\\\\ ;&|<>()`#\n$./]{0,60}") {
            let longest: usize = commands(&text).iter().flatten().map(String::len).sum();
            prop_assert!(longest <= text.len());
        }
    }
}
