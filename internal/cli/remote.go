package cli

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// desk has the methods that commands need of a tenon. It is a host in this process or, with --remote, a client of a
// tenon serve.
type desk interface {
	host.Handles
	Start(ctx context.Context, q host.Question) (host.Started, error)
}

// desk opens a host, or returns a client of the tenon serve at --remote.
func (a *app) desk(ctx context.Context, o opening) (desk, error) {
	if a.remote == "" {
		return a.open(ctx, o)
	}
	if o.record != "" || o.replay != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"--record and --replay cannot be used with --remote: the other tenon asks the model")
	}
	if o.adhoc.given() {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"a server of the command line cannot be used with --remote: the other tenon has the tools")
	}
	return a.far(ctx)
}

// far is a client of the tenon serve that --remote names.
type far struct {
	*httpapi.Client
	extras // attachments of the next question
}

// far returns a client of --remote. It sends no request yet.
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
		a.hint("the token goes to %s without TLS: others on the network can read it", u.Host)
	}
	c.Rejoin(a.note, 0)
	return &far{Client: c}, nil
}

func isLocal(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// remoteToken returns the bearer token for --remote, from --token-file or TENON_TOKEN. For the tenon serve of this
// project it is the token next to the store. The token may be empty.
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
		cfg = &config.Config{} // a remote verb works without a valid local configuration
	}
	if v, err := a.judgeTrust(ctx, cfg); err != nil || !v.Trusted() {
		return tenon.Secret{}, nil // an untrusted project must not select a token
	}
	socket := host.Socket(host.Config{Config: cfg, Home: a.home, LookupEnv: a.lookupEnv})
	beside := strings.TrimSuffix(socket, ".sock")
	if here, err := os.ReadFile(beside + ".url"); socket == "" || err != nil ||
		strings.TrimSpace(string(here)) != strings.TrimRight(a.remote, "/") {
		return tenon.Secret{}, nil
	}
	// If the process that wrote the address has ended, another program may listen there now.
	if err := httpapi.CheckServed(ctx, socket); err != nil {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeUnreachable, "the token is not sent to %s: %s is left from a "+
			"tenon serve that has ended: %w", a.remote, beside+".url", err)
	}
	b, err := os.ReadFile(beside + ".token")
	if err != nil {
		return tenon.Secret{}, nil // tenon serve uses serve.auth instead
	}
	return remoteSecret(beside+".token", string(b))
}

// remoteSecret checks that a token is valid in an HTTP header.
func remoteSecret(where, text string) (tenon.Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeInvalid,
			"%s is not a token: it is empty, or has spaces or other invalid characters", where)
	}
	return tenon.NewSecret(text), nil
}

// Start starts a run at the remote tenon.
func (f *far) Start(ctx context.Context, q host.Question) (host.Started, error) {
	if len(q.Files) > 0 || len(q.History) > 0 {
		return host.Started{}, tenon.Errorf(tenon.CodeInvalid, "a history does not go with --remote")
	}
	got, err := f.Client.Start(ctx, startRequest(q, f.extras), tenon.NewID("cli", time.Now()))
	return host.Started{Run: got.Run, Problems: httpapi.Problems(got.Problems)}, err
}

// startRequest converts a question to the request of the HTTP API.
func startRequest(q host.Question, e extras) httpapi.StartRequest {
	r := httpapi.StartRequest{Question: q.Text, Agent: q.Agent, Session: q.Session, Fork: q.Fork, Model: q.Model,
		NoTools: q.NoTools, OutputSchema: q.Output,
		ToolChoice: q.ToolChoice, Groups: q.Groups, State: q.State, MaxTurns: q.MaxTurns, Mode: q.Mode, Yes: q.Grant,
		Files: e.files, Resources: e.resources, Data: e.data}
	if t := q.OnlyTable; t != nil {
		r.ToolTable, r.ToolTableFile, r.ToolColumn = t.Data, t.File, t.Column
	}
	return r
}

// canRemote is the annotation of verbs that work with --remote.
const canRemote = "remote"

// remotely marks a verb as one that works with --remote.
func remotely(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[canRemote] = "yes"
	return cmd
}

// checkRemote refuses --remote for a verb that does not support it.
func (a *app) checkRemote(cmd *cobra.Command) error {
	switch {
	case a.remote == "" && a.tokenFile != "" && !cmd.HasSubCommands():
		return usage(cmd, "--token-file needs --remote")
	case a.remote == "" || cmd.HasSubCommands() || cmd.Annotations[canRemote] != "":
		return nil
	}
	return usage(cmd, "%s works only on this machine, not with --remote; these verbs do: %s",
		cmp.Or(strings.TrimPrefix(cmd.CommandPath(), "tenon "), "tenon"), remoteVerbs)
}

// remoteVerbs lists the verbs that work with --remote, for the error.
const remoteVerbs = "run, chat, runs, sessions, approvals, servers (list, enable, disable, restart), tools (list, " +
	"show, call), schedules and stats"

var (
	_ desk = (*host.Host)(nil)
	_ desk = (*far)(nil)
)
