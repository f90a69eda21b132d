package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/workflow"
)

// callArguments are the arguments of a call on the command line: one JSON object, or words, which the schema of the
// tool explains.
type callArguments struct {
	raw   json.RawMessage
	words []catalog.Word // if any, raw is empty
}

// tableParameters parses the arguments of a call to a table's tool.
func (a *app) tableParameters(params string, given bool, words []string) (callArguments, error) {
	args, err := a.parameters(params, given, words)
	if err != nil && given && len(words) == 0 && json.Valid([]byte(params)) {
		return args, tenon.Errorf(tenon.CodeInvalid, "Parameters must be a JSON object.")
	}
	return args, err
}

// parameters parses the arguments of a call.
func (a *app) parameters(params string, given bool, words []string) (args callArguments, err error) {
	if !given {
		args.words, err = parseWords(words)
		return args, err
	}
	if len(words) > 0 {
		return args, tenon.Errorf(tenon.CodeInvalid, "parameters are given by --params or as words, not both: '%s'",
			words[0])
	}
	if file, ok := strings.CutPrefix(params, "@"); ok {
		b, err := readUpTo(file, maxStdin)
		if err != nil {
			return args, tenon.Errorf(tenon.CodeInvalid, "--params: %w", err)
		}
		params = string(b)
	} else if params == "-" {
		if params, err = a.stdin(); err != nil {
			return args, err
		}
	}
	args.raw, err = object(params)
	return args, err
}

// parseWords splits words of the forms KEY=VALUE and KEY:=JSON (as httpie does).
func parseWords(words []string) ([]catalog.Word, error) {
	seen := map[string]bool{}
	var list []catalog.Word
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		isJSON := strings.HasSuffix(key, ":")
		key = strings.TrimSuffix(key, ":")
		switch {
		case strings.HasPrefix(strings.TrimSpace(w), "{"):
			return nil, tenon.Errorf(tenon.CodeInvalid, "parameters as one JSON object go to --params; words are "+
				"KEY=VALUE or KEY:=JSON")
		case !ok || key == "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "parameter '%s' is not of the form KEY=VALUE or KEY:=JSON", w)
		case seen[key]:
			return nil, tenon.Errorf(tenon.CodeInvalid, "parameter '%s' is given twice", key)
		case isJSON && !json.Valid([]byte(value)):
			return nil, tenon.Errorf(tenon.CodeInvalid, "parameter '%s': '%s' is not JSON; for a text write %s=TEXT",
				key, value, key)
		}
		seen[key] = true
		list = append(list, catalog.Word{Key: key, Text: value, JSON: isJSON})
	}
	return list, nil
}

// wordParams builds a JSON object from words without a schema: KEY=VALUE is a text.
func wordParams(words []string) (json.RawMessage, error) {
	list, err := parseWords(words)
	if err != nil {
		return nil, err
	}
	return catalog.TypedWords(nil, list), nil
}

// readWords makes the arguments of a remote tool from words.
func (f *far) readWords(ctx context.Context, name string, args callArguments) (callArguments, error) {
	if len(args.words) == 0 {
		return args, nil
	}
	t, err := f.Tools().Get(ctx, name)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return args, f.unknownTool(ctx, name)
	case err != nil:
		return args, err
	case t.KindName() == tenon.KindWorkflow:
		return callArguments{raw: catalog.TypedWords(t.Input, args.words)}, nil
	}
	raw, err := catalog.ReadWords(t.Input, args.words)
	return callArguments{raw: raw}, err
}

// argumentsError writes errors about arguments for a person: it leaves out the schema, which a model needs, and says
// how missing parameters and tables are given.
func argumentsError(err error, tool string) error {
	var misfit *catalog.Misfit
	if errors.As(err, &misfit) {
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' do not fit its schema: %w; "+
			"see tenon tools show %s", misfit.Tool, misfit.Err, misfit.Tool)
	}
	var words *catalog.WordsError
	if errors.As(err, &words) {
		return tenon.Errorf(tenon.CodeInvalid, "%s", wordsText(words, tool))
	}
	return missingError(err)
}

// wordsText describes the mistakes in words. tool is "" if the command names no tool.
func wordsText(err *catalog.WordsError, tool string) string {
	text, more := "the arguments", ""
	if tool != "" {
		text, more = "tool '"+tool+"'", "; tenon tools show "+tool+" shows its arguments"
	}
	if len(err.Mistakes) == 1 {
		return text + ": " + err.Mistakes[0] + strings.ReplaceAll(more, ";", "\n ")
	}
	return fmt.Sprintf("%s: %d mistakes%s\n  %s", text, len(err.Mistakes), more, strings.Join(err.Mistakes, "\n  "))
}

// missingError extends an error about missing parameters or tables by the words and flags that supply them.
func missingError(err error) error {
	var missing *workflow.MissingError
	if !errors.As(err, &missing) {
		return err
	}
	var forms []string
	for _, name := range missing.Parameters {
		forms = append(forms, name+"=VALUE")
	}
	for _, name := range missing.Inputs {
		forms = append(forms, fmt.Sprintf("--in %s=FILE.arrow", name))
	}
	return tenon.Errorf(tenon.ErrorCode(err), "%w; add to the command: %s", err, strings.Join(forms, " "))
}
