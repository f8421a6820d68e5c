//! One HTML file: headings, sentences, tables and pictures, no scripts, nothing from the network.

use std::fmt::Write as _;

use crate::style;
use crate::svg::{Picture, escape};

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: Vec<String>,
    callouts: String,
    /// Section above the lead, which the navigation leaves out.
    first: Option<Section>,
    sections: Vec<Section>,
    footer: String,
}

impl Page {
    /// A page with a title and nothing else.
    pub fn new(title: &str) -> Page {
        Page {
            title: title.to_owned(),
            lead: Vec::new(),
            callouts: String::new(),
            first: None,
            sections: Vec::new(),
            footer: String::new(),
        }
    }

    /// Adds a line below the title.
    pub fn lead(&mut self, text: &str) -> &mut Page {
        self.lead.push(text.to_owned());
        self
    }

    /// Adds a box above all sections.
    pub fn callout(&mut self, tone: Tone, heading: &str, lines: &[String]) -> &mut Page {
        self.callouts.push_str(&callout(tone, heading, lines));
        self
    }

    /// Sets a section that comes before everything but the title.
    pub fn first(&mut self, section: Section) -> &mut Page {
        self.first = Some(section);
        self
    }

    /// Adds a section.
    pub fn add(&mut self, section: Section) -> &mut Page {
        self.sections.push(section);
        self
    }

    /// Adds a line at the end that names the page's maker.
    pub fn footer(&mut self, text: &str) -> &mut Page {
        self.footer = text.to_owned();
        self
    }

    /// The file.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
            style::COLOURS,
            style::PAGES,
            style::PICTURES
        );
        if let Some(section) = &self.first {
            let heading = escape(&section.heading);
            let _ = writeln!(
                html,
                "<section>\n<h2>{heading}</h2>\n{}</section>",
                section.body
            );
        }
        for line in &self.lead {
            let _ = writeln!(html, "<p class=\"lead\">{}</p>", escape(line));
        }
        if self.sections.len() > 2 {
            html.push_str("<nav aria-label=\"Sections\">");
            for (at, section) in self.sections.iter().enumerate() {
                let _ = writeln!(html, "<a href=\"#s{at}\">{}</a>", escape(&section.heading));
            }
            html.push_str("</nav>\n");
        }
        html.push_str(&self.callouts);
        for (at, section) in self.sections.iter().enumerate() {
            let heading = escape(&section.heading);
            let _ = writeln!(html, "<section id=\"s{at}\">\n<h2>{heading}</h2>");
            html.push_str(&section.body);
            html.push_str("</section>\n");
        }
        if !self.footer.is_empty() {
            let _ = writeln!(html, "<footer>{}</footer>", escape(&self.footer));
        }
        html.push_str("</main>\n</body>\n</html>\n");
        html
    }
}

/// Colour of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A problem.
    Bad,
    /// A good result.
    Good,
    /// A remark.
    Note,
}

/// A heading with its contents.
#[derive(Clone, Debug)]
pub struct Section {
    heading: String,
    body: String,
}

impl Section {
    /// An empty section.
    pub fn new(heading: &str) -> Section {
        Section {
            heading: heading.to_owned(),
            body: String::new(),
        }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: &str) -> Section {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// Adds an explanation of the section, folded.
    #[must_use]
    pub fn explained(mut self, text: &str) -> Section {
        let _ = writeln!(
            self.body,
            "<details><summary>How to read this</summary>\n<p>{}</p></details>",
            escape(text)
        );
        self
    }

    /// Adds lines as a terminal shows them.
    #[must_use]
    pub fn printed(mut self, text: &str) -> Section {
        let _ = writeln!(self.body, "<pre>{}</pre>", escape(text));
        self
    }

    /// Adds a smaller heading.
    #[must_use]
    pub fn heading(mut self, text: &str) -> Section {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(text));
        self
    }

    /// Adds a list of sentences; nothing for none.
    #[must_use]
    pub fn list(mut self, items: &[String]) -> Section {
        if !items.is_empty() {
            self.body.push_str("<ul>\n");
            for item in items {
                let _ = writeln!(self.body, "<li>{}</li>", escape(item));
            }
            self.body.push_str("</ul>\n");
        }
        self
    }

    /// Adds a box.
    #[must_use]
    pub fn callout(mut self, tone: Tone, heading: &str, lines: &[String]) -> Section {
        self.body.push_str(&callout(tone, heading, lines));
        self
    }

    /// Adds a picture with its caption, which may be empty.
    #[must_use]
    pub fn picture(mut self, picture: &Picture, caption: &str) -> Section {
        let _ = writeln!(
            self.body,
            "<figure>\n<div class=\"scroll\">{}</div>",
            picture.inline()
        );
        if !caption.is_empty() {
            let _ = writeln!(self.body, "<figcaption>{}</figcaption>", escape(caption));
        }
        self.body.push_str("</figure>\n");
        self
    }

    /// Adds a table; nothing if it has no rows.
    #[must_use]
    pub fn table(mut self, table: &Table) -> Section {
        self.body.push_str(&table.html());
        self
    }

    /// Adds a table that opens on request.
    #[must_use]
    pub fn folded_table(mut self, summary: &str, table: &Table) -> Section {
        if !table.rows.is_empty() {
            let (summary, table) = (escape(summary), table.html());
            let _ = writeln!(
                self.body,
                "<details><summary>{summary}</summary>\n{table}</details>"
            );
        }
        self
    }
}

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<Column>,
    /// Cells in the order of the columns.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Whether it holds numbers, which are aligned right.
    pub is_number: bool,
}

impl Table {
    /// An empty table. A name that begins with `>` marks a column of numbers.
    pub fn new(columns: &[&str]) -> Table {
        let column = |name: &&str| Column {
            name: name.trim_start_matches('>').to_owned(),
            is_number: name.starts_with('>'),
        };
        Table {
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) -> &mut Table {
        self.rows.push(cells);
        self
    }

    fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let class = |at: usize| {
            let is_number = self.columns.get(at).is_some_and(|column| column.is_number);
            if is_number { " class=\"right\"" } else { "" }
        };
        let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for (at, column) in self.columns.iter().enumerate() {
            let name = escape(&column.name);
            let _ = write!(html, "<th scope=\"col\"{}>{name}</th>", class(at));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let _ = write!(html, "<td{}>{}</td>", class(at), escape(cell));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

fn callout(tone: Tone, heading: &str, lines: &[String]) -> String {
    let class = match tone {
        Tone::Bad => "bad",
        Tone::Good => "good",
        Tone::Note => "note",
    };
    let mut html = format!(
        "<div class=\"callout {class}\"><p><strong>{}</strong></p>",
        escape(heading)
    );
    for line in lines {
        let _ = write!(html, "<p>{}</p>", escape(line));
    }
    html.push_str("</div>\n");
    html
}
