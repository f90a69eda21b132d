package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/wholefile"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/transcript"
)

// conversationFiles names the files that a conversation is read from and written to.
type conversationFiles struct{ history, out string }

func (f *conversationFiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.history, "history", "", "begin with the conversation in `FILE`.json or .arrow")
	cmd.Flags().StringVar(&f.out, "conversation", "", "write the whole conversation to `FILE`.json or .arrow")
}

func (f *conversationFiles) check(cmd *cobra.Command, q *asking, d *detachFlags) error {
	for flag, file := range map[string]string{"history": f.history, "conversation": f.out} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		switch ext := strings.ToLower(filepath.Ext(file)); {
		case ext != ".json" && ext != ".arrow":
			return usage(cmd, "--%s %s: the form of a conversation follows from the file's name, which must end in "+
				".json or .arrow", flag, file)
		case d.detach:
			return usage(cmd, "--%s does not go with --detach: another process asks the model", flag)
		}
	}
	if f.history != "" && q.session != "" {
		return usage(cmd, "--history begins a new session; it does not go with -s")
	}
	if dir, ok := hasFolder(f.out); f.out != "" && !ok {
		return usage(cmd, "--conversation %s: there is no folder %s", f.out, dir)
	}
	return nil
}

// hasFolder reports whether the folder of an output file exists. It is checked before the run, so that no work is lost.
func hasFolder(file string) (dir string, ok bool) {
	dir = filepath.Dir(file)
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

// isTable reports whether a conversation is an Arrow table.
func isTable(file string) bool { return strings.EqualFold(filepath.Ext(file), ".arrow") }

func (f *conversationFiles) read(ctx context.Context) ([]*tenon.Message, error) {
	if f.history == "" {
		return nil, nil
	}
	if isTable(f.history) {
		return f.readTable(ctx)
	}
	file, err := os.Open(f.history)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "--history: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	messages, err := transcript.Read(file)
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history %s: %w", f.history, err)
	}
	return messages, nil
}

// readTable reads a conversation from an Arrow table. The same rules apply as to a JSON file.
func (f *conversationFiles) readTable(ctx context.Context) (messages []*tenon.Message, err error) {
	r, err := table.Open(ctx, f.history, table.Options{})
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history: %w", err)
	}
	defer closing(r, &err)
	if messages, err = r.Conversation(ctx, ""); err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history: %w", err)
	}
	b, err := encodeJSON(messages)
	if err == nil {
		messages, err = transcript.Read(bytes.NewReader(b))
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history %s: %w", f.history, err)
	}
	return messages, nil
}

// write writes the conversation of a run, if a run began. ended is the run's error. write returns it, unless the table
// has a column for errors and contains it.
func (f *conversationFiles) write(ctx context.Context, a *app, h *host.Host, run tenon.Run, agentName string,
	ended error) error {
	failure, err := f.failure(ctx, h, run, agentName, ended)
	if err != nil {
		return err
	}
	err = f.writeMessages(ctx, h, run, failure)
	if err == nil && failure.Text != "" {
		a.hint("the run failed; the error is in column %s of %s", failure.Column, f.out)
		return nil
	}
	return cmp.Or(err, ended)
}

// failure returns the error column of the table, with the error of the run if it failed.
func (f *conversationFiles) failure(ctx context.Context, h *host.Host, run tenon.Run, agentName string,
	ended error) (table.Failure, error) {
	if !isTable(f.out) || run.ID == "" {
		return table.Failure{}, nil
	}
	c, err := h.Service().Info().Config.Agent(agentName)
	if err != nil || c.Errors.Mode != agent.ErrorsColumn {
		return table.Failure{}, err
	}
	out := table.Failure{Column: c.Errors.Column}
	if row, err := h.Runs().Get(ctx, run.ID); ended != nil && err == nil && row.State == tenon.RunFailed {
		out.Text = ended.Error()
	}
	return out, nil
}

func (f *conversationFiles) writeMessages(ctx context.Context, h *host.Host, run tenon.Run,
	failure table.Failure) error {
	if f.out == "" || run.ID == "" {
		return nil
	}
	if _, err := h.Runs().Get(ctx, run.ID); err != nil {
		return nil // the run did not begin, and the error has been reported
	}
	messages, err := h.Runs().Open(run.ID).Conversation(ctx)
	if err != nil {
		return err
	}
	if isTable(f.out) {
		return table.WriteConversation(ctx, f.out, messages, failure,
			table.WriteOptions{BatchRows: h.Service().Info().Config.Tables.BatchRows})
	}
	b, err := encodeJSON(messages)
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "the conversation cannot be written as JSON: %w", err)
	}
	var nice bytes.Buffer
	if json.Indent(&nice, b, "", "  ") == nil {
		b = append(nice.Bytes(), '\n')
	}
	return writeFile(f.out, b)
}

// writeFile writes a file atomically, with access only for the user.
func writeFile(path string, b []byte) error {
	if err := wholefile.Write(path, b, 0o600); err != nil {
		return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", path, err)
	}
	return nil
}
