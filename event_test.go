package tenon_test

import (
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestCommandData(t *testing.T) {
	type wish struct{ Name string }
	kept := &wish{"here"}
	for name, tt := range map[string]struct {
		cmd  tenon.Command
		want string
		same bool
		code tenon.Code
	}{
		"local":              {cmd: tenon.Command{Local: kept}, want: "here", same: true},
		"over a wire":        {cmd: tenon.Command{Data: json.RawMessage(`{"Name":"there"}`)}, want: "there"},
		"beside another one": {cmd: tenon.Command{Local: 1, Data: json.RawMessage(`{"Name":"there"}`)}, want: "there"},
		"neither":            {cmd: tenon.Command{Step: "1.0", Kind: "tool"}, code: tenon.CodeInternal},
		"another type":       {cmd: tenon.Command{Data: json.RawMessage(`[]`)}, code: tenon.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tenon.CommandData[wish](tt.cmd)
			if tenon.ErrorCode(err) != tt.code {
				t.Fatalf("error %v", err)
			}
			if err == nil && (got.Name != tt.want || (got == kept) != tt.same) {
				t.Errorf("%+v", got)
			}
		})
	}
}
