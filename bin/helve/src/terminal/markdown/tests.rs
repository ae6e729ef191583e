//! Whole texts, and what holds for every text in any pieces.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;

fn styled(text: &str, width: usize) -> String {
    let mut markdown = Markdown::new(width, true);
    markdown.push(text) + &markdown.finish()
}

fn plain(text: &str, width: usize) -> String {
    anstream::adapter::strip_str(&styled(text, width)).to_string()
}

/// Lines of a text without the indentation that they have in this file.
fn lines(text: &str) -> String {
    text.lines().map(|line| line.trim_start().trim_start_matches('.').to_owned() + "\n").collect()
}

#[test]
fn a_whole_answer() {
    let text = "# Weather\n\n\nIt is **nice** in\nBerlin.\n\n- one that is longer\n  goes on\n  - two\n    1. three\n- four\n\n\
                > quoted text that wraps\n>\n> - item\n\n---\nend";
    let shown = lines(
        "Weather
        .
        .It is nice in
        .Berlin.
        .
        .• one that is longer
        .  goes on
        .  • two
        .    1. three
        .• four
        .
        .│ quoted text that
        .│ wraps
        .│
        .│ • item
        .
        .────────────────────
        .end",
    );
    assert_eq!(plain(text, 20), shown);
}

#[test]
fn code_is_framed_and_verbatim() {
    let text = "1. run\n   ```sh\n   cargo  run -- *a* | this line is long and never broken\n\n     indented\n   ```\n2. done\n\n~~~\nopen";
    let shown = lines(
        "1. run
        .   ╭─ sh
        .     cargo  run -- *a* | this line is long and never broken
        .
        .       indented
        .   ╰─
        .2. done
        .
        .╭─
        .  open
        .╰─",
    );
    assert_eq!(plain(text, 20), shown);
}

#[test]
fn chinese_wraps_and_tables_line_up() {
    let text = "今天天气很好，**我们去公园散步**，然后回家。\n\n| 城市 | 天气 |\n|---|---|\n| 北京 | 晴，最高气温三十度 |\n| 上海 | 雨 |\n\n\
                | no table |\n后面";
    let shown = lines(
        "今天天气很好，我们去公园
        .散步，然后回家。
        .
        .城市 │ 天气
        .─────┼──────────────────
        .北京 │ 晴，最高气温三十
        .     │ 度
        .上海 │ 雨
        .
        .| no table |
        .后面",
    );
    assert_eq!(plain(text, 24), shown);
}

#[test]
fn blocks_stand_inside_each_other() {
    let text = "> 1. a\n>    ```\n>    x\n>    ```\nout\n> ```\n> open\nleft\n- - twice\n- ```\n  y\n  ```\n-\n* [ ] todo";
    let shown = lines(
        "│ 1. a
        .│    ╭─
        .│      x
        .│    ╰─
        .out
        .│ ╭─
        .│   open
        .│ ╰─
        .left
        .• • twice
        .• ╭─
        .    y
        .  ╰─
        .•
        .• [ ] todo",
    );
    assert_eq!(plain(text, 40).replace(" \n", "\n"), shown);
}

#[test]
fn styles_are_there() {
    assert_eq!(styled("# A *b*", 80), "\u{1b}[1m\u{1b}[4mA\u{1b}[0m\u{1b}[1m\u{1b}[4m \u{1b}[0m\u{1b}[1m\u{1b}[3m\u{1b}[4mb\u{1b}[0m\n");
    assert_eq!(styled("## A\nb", 80), "\u{1b}[1mA\u{1b}[0m\nb\n");
    assert_eq!(styled("**a\nb** c\n\n**d\n\ne", 80), "\u{1b}[1ma\u{1b}[0m\n\u{1b}[1mb\u{1b}[0m c\n\n\u{1b}[1md\u{1b}[0m\n\ne\n");
}

#[test]
fn words_appear_as_they_come() {
    let mut markdown = Markdown::new(80, true);
    assert_eq!(markdown.push("Hel"), "");
    assert_eq!(markdown.push("lo wor"), "Hello");
    assert_eq!(markdown.push("ld\n"), " world\n");
    assert_eq!(markdown.push("你好"), "你");
    assert_eq!(markdown.push("吗"), "好");
    assert_eq!(markdown.push("\n```\nlet x"), "吗\n\u{1b}[2m╭─\u{1b}[0m\n  let x");
    assert_eq!(markdown.push(" = 1"), " = 1");
    assert_eq!(markdown.finish(), "\n\u{1b}[2m╰─\u{1b}[0m\n");
    assert_eq!(markdown.push("again "), "again");
}

#[test]
fn without_style_text_stays_as_it_is() {
    let mut markdown = Markdown::new(10, false);
    let text = "# A **b**\r\n\n\n- a very long line\tthat stays \u{1b}[31m\r.";
    let shown = markdown.push(text) + &markdown.finish();
    assert_eq!(shown, "# A **b**\n\n\n- a very long line\tthat stays \\u{1b}[31m\\u{d}.\n");
    assert_eq!(markdown.push("x\n") + &markdown.finish(), "x\n");
    assert_eq!(markdown.finish(), "");
}

#[test]
fn nothing_harmful_comes_through() {
    for (text, shown) in [
        ("a\u{1b}[2Jb\u{7}", "a\\u{1b}[2Jb\\u{7}\n"),
        ("```\u{1b}]0;x\n\u{9b}1m\u{202e}\n```", "╭─ \\u{1b}]0;x\n  \\u{9b}1m\\u{202e}\n╰─\n"),
        ("[a](http://x\u{8}y)", "a (http://x\\u{8}y)\n"),
        ("|a\u{7}|\n|-|\n|\u{1b}c|", "a\\u{7}\n──────────────\n\\u{1b}c\n"),
        ("👩‍🚀 ❤️ a\u{200d}", "👩‍🚀 ❤️ a\\u{200d}\n"),
    ] {
        assert_eq!(plain(text, 80), shown);
    }
}

#[test]
fn long_texts_take_linear_time() {
    let begun = Instant::now();
    for piece in [
        "[",
        "![",
        "[a](",
        "*",
        "`",
        "|",
        " ",
        ">",
        "-",
        "#",
        "> ",
        "- ",
        "+ ",
        "1. ",
        "\\",
        "**a ",
        "a",
        "中",
        "，",
        "\n",
        "|a|\n|-|\n",
        "```\n",
        "~~~ ",
        "_a",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        let mut markdown = Markdown::new(80, true);
        text.as_bytes().chunks(1000).for_each(|chunk| drop(markdown.push(&String::from_utf8_lossy(chunk))));
        markdown.finish();
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// Texts that look like what models write, and what breaks readers of it.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9}",
        2 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        3 => prop::sample::select(vec![
            "*", "**", "_", "`", "```", "~~", "[", "](", ")", "!", "\\", "#", "# ", "- ", "  - ", "1. ", "> ", "|", "|-|-|\n", "---", "\n\n", "\t",
            "\r", "\u{1b}[1m", "\u{200d}", "中文", "，", "「", "👩\u{200d}🚀", "❤\u{fe0f}", "\n```rs\n", "\n| a | b |\n|--|--|\n",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_do_not_matter(text in texts(), cuts in prop::collection::vec(1_usize..12, 1..20), style: bool, width in 1_usize..60) {
        let mut whole = Markdown::new(width, style);
        let expected = whole.push(&text) + &whole.finish();
        let mut markdown = Markdown::new(width, style);
        let (mut shown, mut rest, mut cuts) = (String::new(), text.as_str(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (place, last) = rest.char_indices().nth(cuts.next().map_or(0, |cut| cut - 1)).unwrap_or((0, 'x'));
            let (piece, after) = rest.split_at(place + rest[place..].chars().next().map_or(last.len_utf8(), char::len_utf8));
            shown += &markdown.push(piece);
            rest = after;
        }
        prop_assert_eq!(shown + &markdown.finish(), expected);
    }

    #[test]
    fn the_terminal_is_safe(text in texts(), style: bool) {
        let mut markdown = Markdown::new(20, style);
        let shown = markdown.push(&text) + &markdown.finish();
        let mut rest = shown.as_str();
        let mut visible = String::new();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            visible += before;
            let code = after.strip_prefix('[').and_then(|code| code.split_once('m'));
            prop_assert!(style && code.is_some_and(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit())), "{:?}", after);
            rest = code.map_or("", |(_, rest)| rest);
        }
        visible += rest;
        prop_assert_eq!(printable::escape(&visible), visible);
    }

    #[test]
    fn no_word_is_lost(text in "([a-z]{1,9}|中文|[ \n*_`~#>.!]|- |1\\. |\\*\\*|```|\\[|\\]){0,40}", width in 1_usize..60) {
        let letters = |text: &str| text.chars().filter(|character| character.is_alphabetic()).collect::<String>();
        prop_assert_eq!(letters(&plain(&text, width)), letters(&text));
    }

    #[test]
    fn lines_fit(text in "([a-z]{1,12}|中文|，|❤️|[ \n*_|]|- |1\\. |> |# |\\[a\\]\\(b\\)|\\|-\\|){0,60}", width in 24_usize..60) {
        for line in plain(&text, width).lines() {
            prop_assert!(line.width() <= width, "{:?}", line);
        }
    }
}
