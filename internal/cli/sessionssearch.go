package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenonhq/tenon/transcript"
)

func newSessionsSearch(a *app) *cobra.Command {
	q := transcript.Query{Limit: 20}
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Search conversations, tool calls and results",
		Long: "Finds messages that contain all words, in upper or lower case and also as parts of longer words.\n" +
			"Words in double quotes are a phrase. Each match shows its session, run, message number (for tenon\n" +
			"sessions fork --at) and role: user, assistant, call (a tool's name and arguments), tool (its\n" +
			"result) or summary. New messages are indexed first, for at most a second.",
		Example: "  tenon sessions search weather london\n  tenon sessions search '\"out of memory\"' -s -1 -o json",
		Args:    args(1, 100, "the words"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Limit < 1 {
				return usage(cmd, "--limit must be at least 1")
			}
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			q.Words = joinWords(args)
			q.Progress = a.indexing()
			q.Behind = a.behind("%s were not searched, which tenon has not indexed yet; search again")
			list, err := h.Sessions().Transcripts().Search(cmd.Context(), q)
			if err != nil {
				return err
			}
			return a.printFound(list, args)
		},
	}
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", q.Limit, "at most `N` places")
	cmd.Flags().StringVarP(&q.Session, "session", "s", "", "only in this session: `ID`, the beginning of one, or -1 "+
		"for the last")
	return cmd
}

// indexing prints the progress of a long indexing on a terminal.
func (a *app) indexing() func(done, total int) { return a.every("indexing messages: %d of %d runs") }

// behind returns a function that prints how many runs an answer leaves out.
func (a *app) behind(format string) func(runs int) {
	return func(runs int) { a.note(format, plural(runs, "older run")) }
}

// every returns a function that prints progress every second, in a format with two numbers. It returns nil if the
// user has no terminal, or wants no notes.
func (a *app) every(format string) func(done, total int) {
	if !a.errTTY || a.quiet {
		return nil
	}
	next := time.Now().Add(time.Second)
	return func(done, total int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			a.note(format, done, total)
		}
	}
}

// joinWords joins arguments into one query. An argument with a space is a phrase, because the shell removed its quotes.
func joinWords(args []string) string {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = w
		if len(args) > 1 && strings.ContainsAny(w, " \t") && !strings.Contains(w, `"`) {
			words[i] = `"` + w + `"`
		}
	}
	return strings.Join(words, " ")
}

// printFound prints the matches. On a terminal the words are highlighted.
func (a *app) printFound(list []transcript.Hit, words []string) error {
	if a.isJSON() || !a.outTTY {
		return printList(a, list, nil, func(f transcript.Hit) []string {
			return []string{f.Session, f.Run, numberOf(f), f.Time, f.Role, f.Snippet}
		})
	}
	if len(list) == 0 {
		a.note("nothing found")
		return nil
	}
	var alternatives []string
	for _, w := range strings.Fields(strings.ReplaceAll(strings.Join(words, " "), `"`, " ")) {
		alternatives = append(alternatives, regexp.QuoteMeta(w))
	}
	var b strings.Builder
	mark, err := regexp.Compile("(?i)" + strings.Join(alternatives, "|"))
	last := ""
	for _, f := range list {
		if f.Session != last {
			last = f.Session
			fmt.Fprintf(&b, "%s  %s\n", a.outStyle(bold, safeLine(f.Session)), shorten(safeLine(f.Title), 80))
		}
		text := safeLine(f.Snippet)
		if err == nil && len(alternatives) > 0 {
			text = mark.ReplaceAllStringFunc(text, func(s string) string { return a.outStyle(yellow, s) })
		}
		fmt.Fprintf(&b, "  %s  %s\n", a.outStyle(dim, safeLine(numberOf(f)+" "+f.Role+"  "+f.Run)), text)
	}
	return a.write([]byte(b.String()))
}

func numberOf(f transcript.Hit) string {
	if f.N == 0 {
		return "-"
	}
	return strconv.Itoa(f.N)
}
