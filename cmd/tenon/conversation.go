package main

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
)

// conversationFiles are the files that a conversation comes from and goes to.
type conversationFiles struct{ history, out string }

func (f *conversationFiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.history, "history", "", "a conversation that stands before the question: `FILE`.json or .arrow")
	cmd.Flags().StringVar(&f.out, "conversation", "", "write the whole conversation to `FILE`.json or .arrow")
}

func (f *conversationFiles) check(cmd *cobra.Command, q *asking, d *detachFlags) error {
	for flag, file := range map[string]string{"history": f.history, "conversation": f.out} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		switch ext := strings.ToLower(filepath.Ext(file)); {
		case ext != ".json" && ext != ".arrow":
			return usage(cmd, "--%s %s: the form of a conversation follows from the file's name, which must end in .json or .arrow", flag, file)
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

// hasFolder reports whether the folder is there that a file goes to: what is found out only
// after the work was done, is done for nothing.
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
	messages, err := host.ReadConversation(file)
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history %s: %w", f.history, err)
	}
	return messages, nil
}

// readTable reads a conversation from an Arrow table. It is held to the same rules
// as one from a JSON file.
func (f *conversationFiles) readTable(ctx context.Context) (messages []*tenon.Message, err error) {
	r, err := table.Open(f.history, table.Options{})
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history: %w", err)
	}
	defer closing(r, &err)
	if messages, err = r.Conversation(ctx, ""); err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history: %w", err)
	}
	b, err := encodeJSON(messages)
	if err == nil {
		messages, err = host.ReadConversation(bytes.NewReader(b))
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "--history %s: %w", f.history, err)
	}
	return messages, nil
}

// write writes the conversation of a run, if one began. Err is how the run ended; it
// is nil in what is returned where it stands in the table instead.
func (f *conversationFiles) write(ctx context.Context, a *app, h *host.Host, run tenon.Run, agentName string, ended error) error {
	failure, err := f.failure(ctx, h, run, agentName, ended)
	if err != nil {
		return err
	}
	err = f.writeMessages(ctx, h, run, failure)
	if err == nil && failure.Text != "" {
		a.hint("the run failed; the error stands in column %s of %s", failure.Column, f.out)
		return nil
	}
	return cmp.Or(err, ended)
}

// failure says whether the error of a run goes into the table.
func (f *conversationFiles) failure(ctx context.Context, h *host.Host, run tenon.Run, agentName string, ended error) (table.Failure, error) {
	if !isTable(f.out) || run.ID == "" {
		return table.Failure{}, nil
	}
	c, err := h.Config().Agent(agentName)
	if err != nil || c.Errors.Mode != agent.ErrorsColumn {
		return table.Failure{}, err
	}
	out := table.Failure{Column: c.Errors.Column}
	if row, err := h.RunRow(ctx, run.ID); ended != nil && err == nil && row.State == tenon.RunFailed {
		out.Text = ended.Error()
	}
	return out, nil
}

func (f *conversationFiles) writeMessages(ctx context.Context, h *host.Host, run tenon.Run, failure table.Failure) error {
	if f.out == "" || run.ID == "" {
		return nil
	}
	if _, err := h.RunRow(ctx, run.ID); err != nil {
		return nil // it did not begin, and that was said
	}
	messages, err := h.Conversation(ctx, run.ID)
	if err != nil {
		return err
	}
	if isTable(f.out) {
		return table.WriteConversation(ctx, f.out, messages, failure, table.WriteOptions{BatchRows: h.Config().Tables.BatchRows})
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

// writeFile puts a file in place all at once, for the user alone.
func writeFile(path string, b []byte) error {
	if err := wholefile.Write(path, b, 0o600); err != nil {
		return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", path, err)
	}
	return nil
}
