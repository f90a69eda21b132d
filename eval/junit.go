package eval

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The elements of JUnit's XML that all readers support.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suite junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		junitCounts
		Cases []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Time    string      `xml:"time,attr"`
		Failure *junitCause `xml:"failure,omitempty"`
		Error   *junitCause `xml:"error,omitempty"`
		Skipped *junitSkip  `xml:"skipped,omitempty"`
		Out     string      `xml:"system-out,omitempty"`
	}
	junitSkip struct {
		Message string `xml:"message,attr"`
	}
	junitCause struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the result as JUnit XML with one testcase per case. The output of a case that
// passed lists its failed attempts.
func (r *Result) WriteJUnit(w io.Writer) error {
	counts := junitCounts{Name: clean(r.Suite), Tests: len(r.Cases), Time: seconds(r.Millis)}
	s := junitSuite{}
	for _, c := range r.Cases {
		j := junitCase{Class: clean(r.Suite), Name: clean(c.Name)}
		var texts []string
		var millis int64
		first, broken := "", true
		for _, a := range c.Attempts {
			millis += a.Millis
			if a.Whole() {
				broken = false
				continue
			}
			broken = broken && a.Error != ""
			why := a.reasons()
			if first == "" && len(why) > 0 {
				first = why[0]
			}
			texts = append(texts, fmt.Sprintf("attempt %d (run %s):\n  %s", a.Number, a.Run, strings.Join(why, "\n  ")))
		}
		j.Time = seconds(millis)
		text := clean(strings.Join(texts, "\n"))
		cause := &junitCause{Message: clean(first), Text: text}
		switch {
		case c.Passed:
			j.Out = text
		case c.State == CaseNotJudged:
			j.Out, j.Skipped = text, &junitSkip{Message: c.WhyNotJudged()}
			counts.Skipped++
		case broken:
			j.Error = cause
			counts.Errors++
		default:
			j.Failure = cause
			counts.Failures++
		}
		s.Cases = append(s.Cases, j)
	}
	s.junitCounts = counts
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return tenon.Errorf(tenon.CodeStore, "junit: %w", err)
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{junitCounts: counts, Suite: s}); err != nil {
		return tenon.Errorf(tenon.CodeStore, "junit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// reasons returns all reasons why an attempt failed.
func (a Attempt) reasons() []string {
	if a.Error == "" {
		return a.Failures
	}
	return append([]string{a.Error}, a.Failures...)
}

// Reason returns the first reason why an attempt failed, or "" if it passed.
func (a Attempt) Reason() string {
	if why := a.reasons(); len(why) > 0 {
		return why[0]
	}
	return ""
}

// WhyNotJudged explains the state [CaseNotJudged].
func (c CaseResult) WhyNotJudged() string {
	if len(c.Unused) == 0 {
		return "the case expects nothing"
	}
	return "nothing was checked: " + strings.Join(c.Unused, ", ") + " not used"
}

func seconds(millis int64) string { return fmt.Sprintf("%d.%03d", millis/1000, millis%1000) }

// clean replaces characters that XML cannot contain.
func clean(s string) string {
	return tenon.Visible(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < 0x20 && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s))
}
