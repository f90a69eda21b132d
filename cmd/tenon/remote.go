package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// desk is where a verb does its work: a host in this process, or, with --remote, the one
// behind a tenon serve.
type desk interface {
	runsDesk
	handsDesk
	asksDesk
	sessionsDesk
	keepDesk
	callsDesk
	tablesDesk
	io.Closer
}

// runsDesk looks at runs.
type runsDesk interface {
	Runs(ctx context.Context, f engine.Filter) ([]tenon.Run, error)
	RunRow(ctx context.Context, ref string) (tenon.Run, error)
	Journal(ctx context.Context, run string, after uint64) ([]tenon.Event, error)
	Report(ctx context.Context, run string) (agent.Report, error)
	Artifact(ctx context.Context, run, id string) (data []byte, mimeType string, err error)
}

// tablesDesk has the tables of runs.
type tablesDesk interface {
	RunTables(ctx context.Context, run string) ([]host.RunTable, error)
	RunTableBytes(ctx context.Context, run, digest string) ([]byte, error)
}

// handsDesk has a hand in runs.
type handsDesk interface {
	source
	Start(ctx context.Context, q host.Question) (tenon.Run, []host.Problem, error)
	Resume(ctx context.Context, run string) error
	Cancel(ctx context.Context, run, reason string) error
	Steer(ctx context.Context, run, text, by string) (tenon.Event, error)
}

// asksDesk knows what waits for a person, and who works on what.
type asksDesk interface {
	Approvals(ctx context.Context) ([]host.Approval, error)
	Awaited(ctx context.Context, run string) ([]host.Approval, error)
	Settle(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool, err error)
	Owned(run string) (bool, error)
	Claimed(what string) (bool, error)
}

// sessionsDesk looks at conversations.
type sessionsDesk interface {
	Sessions(ctx context.Context, limit int) ([]tenon.Session, error)
	Session(ctx context.Context, ref string) (tenon.Session, error)
	Said(ctx context.Context, session string) ([]host.Said, error)
	Calls(ctx context.Context, session string) ([]agent.CallRecord, error)
	Compact(ctx context.Context, session, model string) (tenon.Run, error)
}

// keepDesk changes conversations, looks for words in them and takes them along.
type keepDesk interface {
	RenameSession(ctx context.Context, session, title string) (tenon.Session, error)
	DeleteSession(ctx context.Context, session string) error
	Fork(ctx context.Context, f host.Fork) (s tenon.Session, at int, err error)
	Search(ctx context.Context, q host.Search) ([]host.Found, error)
	exporter
}

type exporter interface {
	Export(ctx context.Context, w io.Writer, session string) error
	ExportMarkdown(ctx context.Context, w io.Writer, session string) error
}

// callsDesk makes tool calls, and counts them.
type callsDesk interface {
	StartCall(ctx context.Context, name string, args json.RawMessage) (tenon.Run, error)
	FollowCall(ctx context.Context, run string, after uint64, watch func(tenon.Event)) (*tenon.Result, error)
	Stats(ctx context.Context, q host.StatsQuery) ([]host.Stat, error)
	Grants(ctx context.Context, of tenon.Principal) ([]host.Grant, error)
	Revoke(ctx context.Context, g host.Grant) error
}

// desk opens a host, or reaches the one of --remote.
func (a *app) desk(ctx context.Context, o opening) (desk, error) {
	if a.remote == "" {
		return a.open(ctx, o)
	}
	if o.record != "" || o.replay != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "--record and --replay do not go with --remote: the other tenon asks the model")
	}
	if o.adhoc.given() {
		return nil, tenon.Errorf(tenon.CodeInvalid, "a server of the command line does not go with --remote: the tools are those of the other tenon")
	}
	return a.far(ctx)
}

// far is the tenon behind --remote.
type far struct {
	*httpapi.Client
	note  func(format string, args ...any)
	pause time.Duration // before a stream is joined again

	extras // of the next question
}

// far reaches it. Nothing is sent yet.
func (a *app) far(ctx context.Context) (*far, error) {
	token, err := a.remoteToken(ctx)
	if err != nil {
		return nil, err
	}
	c, err := httpapi.NewRemote(a.remote, token)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(a.remote); err == nil && u.Scheme == "http" && !token.IsZero() && !isLocal(u.Hostname()) {
		a.hint("the token goes to %s without TLS: everybody on the way can read it", u.Host)
	}
	return &far{Client: c, note: a.note, pause: rejoinPause}, nil
}

func isLocal(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// remoteToken is the bearer token for --remote: that of --token-file, of TENON_TOKEN, or,
// where it is the tenon serve of this project, the one beside its store. It may be none.
func (a *app) remoteToken(ctx context.Context) (tenon.Secret, error) {
	if a.tokenFile != "" {
		b, err := os.ReadFile(a.tokenFile)
		if err != nil {
			return tenon.Secret{}, tenon.Errorf(tenon.CodeInvalid, "--token-file: %w", err)
		}
		return remoteSecret("--token-file "+a.tokenFile, string(b))
	}
	if t, ok := a.lookupEnv("TENON_TOKEN"); ok && t != "" {
		return remoteSecret("TENON_TOKEN", t)
	}
	cfg, err := config.Load(ctx, a.configOptions())
	if err != nil {
		cfg = &config.Config{} // it is no matter of a remote verb
	}
	socket := host.Socket(host.Config{Config: cfg, Home: a.home, LookupEnv: a.lookupEnv})
	beside := strings.TrimSuffix(socket, ".sock")
	if here, err := os.ReadFile(beside + ".url"); socket == "" || err != nil || strings.TrimSpace(string(here)) != strings.TrimRight(a.remote, "/") {
		return tenon.Secret{}, nil
	}
	b, err := os.ReadFile(beside + ".token")
	if err != nil {
		return tenon.Secret{}, nil // it has another one
	}
	return remoteSecret(beside+".token", string(b))
}

// remoteSecret is a token that can stand in a header.
func remoteSecret(where, text string) (tenon.Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeInvalid, "%s is no token: it is empty, or has spaces or signs that no token has", where)
	}
	return tenon.NewSecret(text), nil
}

// Start begins a run there.
func (f *far) Start(ctx context.Context, q host.Question) (tenon.Run, []host.Problem, error) {
	if len(q.Files) > 0 || len(q.History) > 0 {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "a history does not go with --remote")
	}
	got, err := f.Client.Start(ctx, startRequest(q, f.extras), tenon.NewID("cli", time.Now()))
	return got.Run, farProblems(got.Problems), err
}

// farProblems are problems as they are told of here.
func farProblems(list []httpapi.ServerProblem) (out []host.Problem) {
	for _, p := range list {
		out = append(out, host.Problem{Server: p.Server, Err: &tenon.Error{Code: p.Code, Message: p.Message}})
	}
	return out
}

// startRequest is a question as it is sent.
func startRequest(q host.Question, e extras) httpapi.StartRequest {
	return httpapi.StartRequest{Question: q.Text, Agent: q.Agent, Session: q.Session, Fork: q.Fork, Model: q.Model, NoTools: q.NoTools, OutputSchema: q.Output,
		ToolChoice: q.ToolChoice, Groups: q.Groups, State: q.State, MaxTurns: q.MaxTurns, Mode: q.Mode, Yes: q.Grant,
		Files: e.files, Resources: e.resources, Data: e.data}
}

// The pauses before a stream that broke off is joined again: about a minute in all.
const (
	rejoinTries = 30
	rejoinPause = 2 * time.Second
)

// Events follows a run there. Where the stream breaks off it is joined again after the
// last event that came, and what was said of an answer that is not whole starts over.
func (f *far) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	return func(yield func(tenon.Event, error) bool) {
		for tries := 0; ; {
			var broke error
			for e, err := range f.Client.Events(ctx, run, after) {
				if err != nil {
					broke = err
					break
				}
				after, tries = max(after, e.Seq), 0
				if !yield(e, nil) {
					return
				}
			}
			if broke == nil || ctx.Err() != nil {
				return
			}
			if tries++; tenon.ErrorCode(broke) != tenon.CodeUnreachable || tries > rejoinTries || after == 0 {
				yield(tenon.Event{}, broke)
				return
			}
			if tries == 1 {
				f.note("tenon: %s; joining it again", broke)
			}
			select {
			case <-time.After(f.pause):
			case <-ctx.Done():
				return
			}
			data, _ := json.Marshal(engine.Delta{Text: "the connection broke off"}) // ours
			if tries == 1 && !yield(tenon.Event{Run: run, Kind: engine.LiveReset, Data: data}, nil) {
				return
			}
		}
	}
}

// FollowCall follows a call there, across a stream that breaks off, as Events does.
func (f *far) FollowCall(ctx context.Context, run string, after uint64, watch func(tenon.Event)) (*tenon.Result, error) {
	return f.Client.FollowEvents(ctx, run, f.Events(ctx, run, after), watch)
}

// Resume goes on with a run there. One that was decided goes on by itself.
func (f *far) Resume(ctx context.Context, run string) error {
	err := f.Client.Resume(ctx, run)
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		return nil // it has ended in the meantime, which its events say
	}
	return err
}

// canRemote marks verbs that --remote goes with.
const canRemote = "remote"

// remotely marks a verb as one that works with --remote.
func remotely(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[canRemote] = "yes"
	return cmd
}

// checkRemote refuses --remote where it would do nothing.
func (a *app) checkRemote(cmd *cobra.Command) error {
	switch {
	case a.remote == "" && a.tokenFile != "" && !cmd.HasSubCommands():
		return usage(cmd, "--token-file needs --remote")
	case a.remote == "" || cmd.HasSubCommands() || cmd.Annotations[canRemote] != "":
		return nil
	}
	return usage(cmd, "%s works on this machine alone and does not go with --remote; %s do", cmp.Or(strings.TrimPrefix(cmd.CommandPath(), "tenon "), "tenon"), remoteVerbs)
}

// remoteVerbs are named in the error.
const remoteVerbs = "run, chat, runs, sessions, approvals, servers (list, enable, disable, restart), tools (list, show, call) and stats"

var (
	_ desk = (*host.Host)(nil)
	_ desk = (*far)(nil)
)
