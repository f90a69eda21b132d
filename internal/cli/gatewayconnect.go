package cli

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/clientfile"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// maxClientFile bounds the file of a client, in bytes. Some clients keep their history in it.
const maxClientFile = 64 << 20

func newGatewayConnect(a *app) *cobra.Command {
	var endpoint string
	var print bool
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Have a client start tenon gateway",
		Long: "Adds tenon to the user's configuration file of a client: " + strings.Join(clientfile.Names(), ", ") +
			".\nIt shows the change and makes it; the file as it was is kept next to it. Everything else in the\n" +
			"file stays as it is, comments included. The entry has the absolute path of this tenon and of the\n" +
			"configuration (--config, or the file of the folder), and never a token.",
		Example: "  tenon gateway connect claude\n  tenon gateway connect vscode --endpoint coding\n" +
			"  tenon gateway connect codex --print",
		Args: args(1, 1, "CLIENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := findClient(args[0])
			if err != nil {
				return err
			}
			e, err := a.clientEntry(cmd.Context(), endpoint)
			if err != nil {
				return err
			}
			err = a.changeClient(c, print, func(text string) (string, error) { return c.Put(text, e) })
			if print && tenon.ErrorCode(err) == tenon.CodeInvalid {
				a.note("%s", err)
				return a.printText(c.Show(e))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "offer only the tools of the entry `NAME` of gateway.endpoints")
	cmd.Flags().BoolVar(&print, "print", false, "print the change and make none")
	return cmd
}

func newGatewayDisconnect(a *app) *cobra.Command {
	var endpoint string
	var print bool
	cmd := &cobra.Command{
		Use:   "disconnect CLIENT",
		Short: "Take the entry of tenon out of a client's file",
		Long: "Removes the entry that tenon gateway connect made from the file of a client: " +
			strings.Join(clientfile.Names(), ", ") +
			".\nIt shows the change and makes it; the file as it was is kept next to it.",
		Example: "  tenon gateway disconnect claude\n  tenon gateway disconnect vscode --endpoint coding",
		Args:    args(1, 1, "CLIENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := findClient(args[0])
			if err != nil {
				return err
			}
			name := entryName(endpoint)
			return a.changeClient(c, print, func(text string) (string, error) { return c.Drop(text, name) })
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "remove the entry for the endpoint `NAME`")
	cmd.Flags().BoolVar(&print, "print", false, "print the change and make none")
	return cmd
}

func findClient(name string) (clientfile.Client, error) {
	if name == "claude-code" {
		name = "claude"
	}
	c, ok := clientfile.Find(name)
	if !ok {
		return c, tenon.Errorf(tenon.CodeInvalid, "there is no client '%s'%s", tenon.Visible(name),
			didYouMean(name, clientfile.Names()))
	}
	return c, nil
}

// entryName returns the name of the server in a client's file.
func entryName(endpoint string) string {
	if endpoint == "" {
		return "tenon"
	}
	return "tenon-" + endpoint
}

// clientEntry returns the entry for the configuration that this command has. A project's file is only named if the user
// trusts it, because a named file is trusted.
func (a *app) clientEntry(ctx context.Context, endpoint string) (clientfile.Entry, error) {
	e := clientfile.Entry{Name: entryName(endpoint), Args: []string{"gateway"}}
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return e, err
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return e, err
	}
	if err := checkEndpoint(cfg, endpoint); err != nil {
		return e, err
	}
	if e.Command, err = ownPath(); err != nil {
		return e, err
	}
	if cfg.Path != "" {
		e.Args = append(e.Args, "--config", cfg.Path)
	}
	if endpoint != "" {
		e.Args = append(e.Args, "--endpoint", endpoint)
	}
	return e, nil
}

// checkEndpoint checks that an endpoint is configured. The name "" is the endpoint with all tools.
func checkEndpoint(cfg *config.Config, name string) error {
	if _, ok := cfg.Gateway.Endpoints[name]; ok || name == "" {
		return nil
	}
	return tenon.Errorf(tenon.CodeNotFound, "there is no endpoint '%s' in gateway.endpoints%s", tenon.Visible(name),
		didYouMean(name, slices.Sorted(maps.Keys(cfg.Gateway.Endpoints))))
}

// ownPath returns the absolute path of this program. If the shell finds the program, it returns the path that the shell
// finds, even if that is a link. A package manager may replace the file behind the link.
func ownPath() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the path of this program is not known: %w", err)
	}
	found, err := exec.LookPath(filepath.Base(os.Args[0]))
	if err != nil || !filepath.IsAbs(found) {
		return own, nil
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return own, nil
}

// clientChange is the JSON output of connect and disconnect.
type clientChange struct {
	Client  string `json:"client"`
	File    string `json:"file"`
	Change  string `json:"change"` // lines with - or + in front
	Written bool   `json:"written"`
}

// maxShownLine bounds a shown line of a client's file, in bytes. A file on one line may hold anything.
const maxShownLine = 300

// changeClient shows a change of a client's file and makes it.
func (a *app) changeClient(c clientfile.Client, print bool, change func(string) (string, error)) error {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return tenon.Errorf(tenon.CodeInvalid, "the home folder is not known: set HOME")
	}
	path := c.Path(home, a.lookupEnv)
	before, mode, err := readClientFile(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	if after == before {
		a.note("%s: nothing is to be changed", path)
		return nil
	}
	shown := clientChange{Client: c.Name, File: path, Change: lineChanges(before, after), Written: !print}
	if a.isJSON() {
		err = a.printJSON(shown)
	} else {
		err = a.printText(path + "\n" + shown.Change)
	}
	if err != nil || print {
		return err
	}
	if before != "" {
		kept := path + time.Now().UTC().Format(".20060102-150405") + ".bak"
		if err := wholefile.Write(kept, []byte(before), mode); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the file as it was cannot be kept in %s: %w", kept, err)
		}
		a.note("the file as it was: %s", kept)
	} else if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	if err := wholefile.Write(path, []byte(after), mode); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", path, err)
	}
	a.note("start %s again, so that it reads the file", c.Title)
	return nil
}

// readClientFile reads the file of a client. A file that does not exist is empty.
func readClientFile(path string) (text string, mode fs.FileMode, err error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", 0o600, nil
	case err != nil:
		return "", 0, tenon.Errorf(tenon.CodeInvalid, "%w", err)
	case !st.Mode().IsRegular() || st.Size() > maxClientFile:
		return "", 0, tenon.Errorf(tenon.CodeInvalid, "%s is no file of at most %d MiB", path, maxClientFile>>20)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", 0, tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	return string(b), st.Mode().Perm(), nil
}

// cut shortens a line of a client's file.
func cut(line string) string {
	if len(line) <= maxShownLine {
		return line
	}
	return tenon.Truncate(line, maxShownLine) + "…"
}

// lineChanges returns the lines that differ between two texts, with - and + in front. An edit is one block of lines.
func lineChanges(before, after string) string {
	old, now := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	from := 0
	for from < len(old) && from < len(now) && old[from] == now[from] {
		from++
	}
	end := 0
	for end < len(old)-from && end < len(now)-from && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	var b strings.Builder
	for _, part := range []struct {
		sign  string
		lines []string
	}{{"-", old[from : len(old)-end]}, {"+", now[from : len(now)-end]}} {
		for _, line := range part.lines {
			b.WriteString(part.sign + " " + cut(strings.TrimRight(line, "\r\n")) + "\n")
		}
	}
	return b.String()
}
