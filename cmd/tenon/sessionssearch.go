package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
)

func newSessionsSearch(a *app) *cobra.Command {
	q := host.Search{Limit: 20}
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Find what was said: questions, answers, tools, arguments, results",
		Long: "Finds the places where all of the words were said, in any case and also as parts of longer words; words in double\n" +
			"quotes are one phrase. Each place has its session, run, message number (for tenon sessions fork --at) and role:\n" +
			"user, assistant, call (a tool's name and arguments), tool (its result), summary. What was said since the last\nsearch is read first.",
		Example: "  tenon sessions search weather london\n  tenon sessions search '\"out of memory\"' -s -1 -o json",
		Args:    args(1, 100, "the words"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Limit < 1 {
				return usage(cmd, "--limit must be at least 1")
			}
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			q.Words = joinWords(args)
			q.Progress = a.indexing()
			list, err := h.Search(cmd.Context(), q)
			if err != nil {
				return err
			}
			return a.printFound(list, args)
		},
	}
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", q.Limit, "at most `N` places")
	cmd.Flags().StringVarP(&q.Session, "session", "s", "", "only in this session: `ID`, the beginning of one, or -1 for the last")
	return cmd
}

// indexing tells at a terminal how far a long reading has come.
func (a *app) indexing() func(done, total int) {
	if !a.errTTY || a.quiet {
		return nil
	}
	next := time.Now().Add(time.Second)
	return func(done, total int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			a.note("reading what was said: %d of %d runs", done, total)
		}
	}
}

// joinWords makes one query of arguments: one with a space in it is a phrase, as
// it was in quotes for the shell.
func joinWords(args []string) string {
	words := make([]string, len(args))
	for i, w := range args {
		if words[i] = w; len(args) > 1 && strings.ContainsAny(w, " \t") && !strings.Contains(w, `"`) {
			words[i] = `"` + w + `"`
		}
	}
	return strings.Join(words, " ")
}

// printFound lists places. On a terminal the words stand out.
func (a *app) printFound(list []host.Found, words []string) error {
	if a.isJSON() || !a.outTTY {
		return printList(a, list, nil, func(f host.Found) []string {
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

func numberOf(f host.Found) string {
	if f.N == 0 {
		return "-"
	}
	return strconv.Itoa(f.N)
}
