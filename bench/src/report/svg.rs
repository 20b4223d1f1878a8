//! What both charts are drawn with: text, lines and boxes that are readable on light and dark.

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.s{fill:#57606a}\
.a{stroke:#8c959f;fill:none}.o{fill:#1f6feb}.p{fill:#8c959f}\
.c0{stroke:#1f6feb;fill:none}.c1{stroke:#bf8700;fill:none}.c2{stroke:#cf222e;fill:none}\
.c3{stroke:#2da44e;fill:none}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}}";

/// A picture that is being drawn.
pub(super) struct Svg {
    width: u32,
    height: u32,
    body: String,
}

impl Svg {
    /// An empty one, described by `title` to those who cannot see it.
    pub(super) fn new(width: u32, height: u32, title: &str) -> Self {
        Self { width, height, body: format!("<title>{}</title>\n", escaped(title)) }
    }

    /// Text of a class (`t` title, `s` aside, or none), anchored at `start`, `middle` or `end`.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// A filled box.
    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        self.push(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" class=\"{class}\"/>"
        ));
    }

    /// A line through points.
    pub(super) fn line(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(&format!(
            "<polyline points=\"{}\" stroke-width=\"1.5\" class=\"{class}\"/>",
            points.join(" ")
        ));
    }

    fn push(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    /// The picture as a file.
    pub(super) fn finish(self) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\">\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_escaped_and_closed() {
        let mut svg = Svg::new(10, 20, "a < b");
        svg.text(1.0, 2.0, "end", "t", "c & d");
        svg.rect(0.0, 0.0, 1.0, 1.0, "o");
        svg.line(&[(0.0, 0.0), (1.0, 2.0)], "a");
        let file = svg.finish();
        assert!(file.contains("a &lt; b") && file.contains("c &amp; d"));
        assert!(file.contains("points=\"0.0,0.0 1.0,2.0\"") && file.ends_with("</svg>\n"));
    }
}
