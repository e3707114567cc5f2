//! A story as a sequence diagram in SVG: drawn here, since a picture that needs no program to be
//! seen can be handed to anybody.

use super::Story;
use super::chart::{Chart, Kind, Row, chart};

/// Between two lifelines.
const COLUMN: usize = 220;
const MARGIN: usize = 24;
const LINE: usize = 16;
/// A character's width, on the safe side for a sans-serif font of 12 pixels.
const GLYPH: usize = 7;
const BOX: usize = 190;

pub(super) fn svg(story: &Story<'_>) -> String {
    Drawing::new(chart(story)).draw(story)
}

struct Drawing {
    chart: Chart,
    width: usize,
    y: usize,
    out: String,
}

impl Drawing {
    fn new(chart: Chart) -> Drawing {
        let columns = chart.parts.len().max(2);
        let width = 2 * MARGIN + BOX + (columns - 1) * COLUMN;
        Drawing { chart, width, y: MARGIN, out: String::new() }
    }

    fn x(column: usize) -> usize {
        MARGIN + BOX / 2 + column * COLUMN
    }

    fn draw(mut self, story: &Story<'_>) -> String {
        let title = story.title();
        let room = (self.width - 2 * MARGIN) / (GLYPH + 1);
        for line in wrapped(&title, room) {
            self.y += LINE;
            self.text(MARGIN, self.y, "start", "#1a1a1a", 14, true, &line);
            self.y += 4;
        }
        self.y += 12;
        let names: Vec<Vec<String>> =
            self.chart.parts.iter().map(|p| wrapped(p, (BOX - 12) / GLYPH)).collect();
        let tallest = names.iter().map(Vec::len).max().unwrap_or(1);
        let head = (tallest * LINE + 12, self.y);
        self.y += head.0 + 14;
        let began = self.y;
        for row in std::mem::take(&mut self.chart.rows) {
            self.row(&row);
        }
        self.ending(story);
        self.y += MARGIN;

        // Lifelines are below everything else.
        let mut below = String::new();
        for (n, name) in names.iter().enumerate() {
            let x = Self::x(n);
            below.push_str(&format!(
                "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{}\" stroke=\"#b8c0cc\" \
                 stroke-dasharray=\"4 4\"/>\n",
                began - 14,
                self.y - MARGIN
            ));
            below.push_str(&rect(x - BOX / 2, head.1, BOX, head.0, "#eef3fb", "#7f93b2"));
            for (at, line) in name.iter().enumerate() {
                let y = head.1 + 6 + LINE * (at + 1) - 4;
                below.push_str(&text(x, y, "middle", "#1a1a1a", 12, true, line));
            }
        }
        let (width, height) = (self.width, self.y);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
             role=\"img\">\n<title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{below}{}</svg>\n",
            escaped(&title),
            self.out
        )
    }

    fn row(&mut self, row: &Row) {
        match row {
            Row::Arrow { number, from, to, says } => {
                let words = format!("{number}. {says}");
                self.arrow(*from, *to, &words, "#1a1a1a", false, false);
            }
            Row::Reply { from, to, says, kind } => {
                let colour = match kind {
                    Kind::Accepted => "#2b6a3f",
                    Kind::Refused => "#a3401c",
                    Kind::Lost => "#b00020",
                };
                self.arrow(*from, *to, says, colour, true, *kind == Kind::Lost);
            }
            Row::Note { number, over, says } => {
                let words = format!("{number}. {says}");
                let (x, width) = match over {
                    Some(n) => (Self::x(*n) - BOX / 2, BOX),
                    None => (MARGIN, self.width - 2 * MARGIN),
                };
                self.boxed(x, width, &words, "#fff8dc", "#c9b458", "#4d4420");
            }
        }
    }

    fn arrow(&mut self, from: usize, to: usize, says: &str, colour: &str, back: bool, lost: bool) {
        let (x1, x2) = (Self::x(from), Self::x(to));
        let room = x1.abs_diff(x2) - 16;
        let middle = (x1 + x2) / 2;
        for line in wrapped(says, room / GLYPH) {
            self.y += LINE;
            // Readable where it crosses a lifeline.
            let half = (line.chars().count() * GLYPH) / 2 + 2;
            let left = middle.saturating_sub(half);
            self.out.push_str(&rect(left, self.y - 12, 2 * half, LINE - 1, "#ffffff", "none"));
            self.text(middle, self.y, "middle", colour, 12, false, &line);
        }
        self.y += 7;
        let y = self.y;
        let dash = if back { " stroke-dasharray=\"5 4\"" } else { "" };
        let right = x2 > x1;
        // A lost reply ends on the way.
        let x2 = if lost { middle } else { x2 };
        self.out.push_str(&format!(
            "<line x1=\"{x1}\" y1=\"{y}\" x2=\"{x2}\" y2=\"{y}\" stroke=\"{colour}\"{dash}/>\n"
        ));
        let head = if lost {
            format!(
                "<path d=\"M{} {} L{} {} M{} {} L{} {}\" stroke=\"{colour}\" fill=\"none\"/>\n",
                x2 - 5,
                y - 5,
                x2 + 5,
                y + 5,
                x2 - 5,
                y + 5,
                x2 + 5,
                y - 5
            )
        } else {
            let neck = if right { x2 - 8 } else { x2 + 8 };
            format!(
                "<path d=\"M{x2} {y} L{neck} {} L{neck} {} Z\" fill=\"{colour}\"/>\n",
                y - 4,
                y + 4
            )
        };
        self.out.push_str(&head);
        self.y += if back { 8 } else { 3 };
    }

    fn boxed(&mut self, x: usize, width: usize, says: &str, fill: &str, edge: &str, ink: &str) {
        let lines = wrapped(says, (width - 12) / GLYPH);
        self.y += 6;
        self.out.push_str(&rect(x, self.y, width, lines.len() * LINE + 8, fill, edge));
        for line in lines {
            self.y += LINE;
            self.text(x + width / 2, self.y, "middle", ink, 12, false, &line);
        }
        self.y += 14;
    }

    fn ending(&mut self, story: &Story<'_>) {
        let Some(end) = story.end_words() else { return };
        let (x, width) = (MARGIN, self.width - 2 * MARGIN);
        let room = (width - 12) / GLYPH;
        let mut lines: Vec<(String, bool)> = vec![(end.head, true)];
        let said = [end.rule, end.witness];
        lines.extend(said.iter().flat_map(|s| wrapped(s, room)).map(|line| (line, false)));
        lines.retain(|(line, _)| !line.is_empty());
        self.y += 10;
        self.out.push_str(&rect(x, self.y, width, lines.len() * LINE + 10, "#fdecea", "#b00020"));
        for (line, bold) in lines {
            self.y += LINE;
            self.text(x + width / 2, self.y, "middle", "#7a0016", 12, bold, &line);
        }
        self.y += 10;
    }

    #[expect(clippy::too_many_arguments)]
    fn text(&mut self, x: usize, y: usize, at: &str, ink: &str, size: u8, bold: bool, line: &str) {
        self.out.push_str(&text(x, y, at, ink, size, bold, line));
    }
}

fn text(x: usize, y: usize, anchor: &str, ink: &str, size: u8, bold: bool, line: &str) -> String {
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{ink}\" \
         font-size=\"{size}\"{weight}>{}</text>\n",
        escaped(line)
    )
}

fn rect(x: usize, y: usize, width: usize, height: usize, fill: &str, edge: &str) -> String {
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
         fill=\"{fill}\" stroke=\"{edge}\"/>\n"
    )
}

/// Lines of at most so many characters, broken at spaces where there are any.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let room = room.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let taken = line.chars().count();
        if taken > 0 && taken + 1 + word.len() > room {
            lines.push(std::mem::take(&mut line));
        }
        // A word longer than a line is cut.
        while word.len() > room {
            let rest = word.split_off(room);
            lines.push(word.into_iter().collect());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Text in XML: markup is escaped, and what XML has no place for is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}
