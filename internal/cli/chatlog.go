package cli

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// screenLog is the log handler of a command that may show a conversation on the whole terminal. While it does, a record
// becomes a remark in plain words, because a line with time and keys is for files. Otherwise, and if stderr is a file,
// the record goes to the handler below. It is safe for concurrent use.
type screenLog struct {
	slog.Handler
	a      *app
	attrs  []slog.Attr
	groups []string
}

// Handle implements [slog.Handler].
func (h *screenLog) Handle(ctx context.Context, r slog.Record) error {
	if !h.a.remarks.Load() {
		return h.Handler.Handle(ctx, r)
	}
	_, err := io.WriteString(h.a.logs, logRemark(r, h.attrs)+"\n")
	return err
}

// WithAttrs implements [slog.Handler].
func (h *screenLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	named := slices.Clone(attrs)
	for i := range named {
		named[i].Key = strings.Join(append(slices.Clone(h.groups), named[i].Key), ".")
	}
	return &screenLog{h.Handler.WithAttrs(attrs), h.a, append(slices.Clip(h.attrs), named...), h.groups}
}

// WithGroup implements [slog.Handler].
func (h *screenLog) WithGroup(name string) slog.Handler {
	return &screenLog{h.Handler.WithGroup(name), h.a, h.attrs, append(slices.Clip(h.groups), name)}
}

// logRemark formats a log record as a person reads it: the level, the server, the message, the error, other values.
func logRemark(r slog.Record, attrs []slog.Attr) string {
	server, problem := "", ""
	var others []string
	add := func(at slog.Attr) bool {
		value := safeLine(at.Value.Resolve().String())
		switch {
		case value == "" || strings.HasPrefix(value, "[]"):
		case at.Key == "server" && server == "":
			server = value
		case (at.Key == "error" || at.Key == "err") && problem == "":
			problem = value
		default:
			others = append(others, at.Key+" "+value)
		}
		return true
	}
	for _, at := range attrs {
		add(at)
	}
	r.Attrs(add)
	level := map[slog.Level]string{slog.LevelWarn: "warning", slog.LevelError: "error"}[r.Level]
	if level == "" {
		level = strings.ToLower(r.Level.String())
	}
	text := level + ": "
	message := safeLine(r.Message)
	if server != "" && !strings.Contains(message, "'"+server+"'") && !strings.Contains(problem, "'"+server+"'") {
		text += "server '" + server + "': "
	}
	text += message
	if problem != "" && !strings.Contains(message, problem) {
		text += ": " + problem
	}
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	return text
}

var _ slog.Handler = (*screenLog)(nil)
