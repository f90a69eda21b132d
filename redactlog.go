package tenon

import (
	"context"
	"log/slog"
)

// Handler returns a log handler that masks secrets in messages, and in values that are strings or errors. It masks the
// secrets that the redactor contains when the record is logged.
func (r *Redactor) Handler(h slog.Handler) slog.Handler { return redacting{h, r} }

// redacting is the handler of [Redactor.Handler].
type redacting struct {
	slog.Handler
	redactor *Redactor
}

// Handle implements [slog.Handler].
func (r redacting) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, r.redactor.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(r.attr(a))
		return true
	})
	return r.Handler.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (r redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return redacting{r.Handler.WithAttrs(clean), r.redactor}
}

// WithGroup implements [slog.Handler].
func (r redacting) WithGroup(name string) slog.Handler {
	return redacting{r.Handler.WithGroup(name), r.redactor}
}

func (r redacting) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.redactor.Text(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, r.redactor.Text(err.Error()))
		}
	}
	return a
}

var _ slog.Handler = redacting{}
