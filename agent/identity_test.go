package agent

import "testing"

// TestCountedByIdentity checks that calls of a tool are counted by the identity of its server. Another server of the
// same name has a separate count; the same server under another name does not. Counts that an earlier release stored
// under the server's name still apply.
func TestCountedByIdentity(t *testing.T) {
	bank := Decision{Server: "bank", Identity: "project:bank", Remote: "send"}
	for _, tt := range []struct {
		name  string
		calls map[string]int
		d     Decision
		want  int
	}{
		{"its own", map[string]int{"project:bank/send": 2}, bank, 2},
		{"of an earlier release", map[string]int{"bank/send": 3}, bank, 3},
		{"of both", map[string]int{"bank/send": 3, "project:bank/send": 2}, bank, 5},
		{"another layer", map[string]int{"project:bank/send": 2}, Decision{Server: "bank", Identity: "user:bank", Remote: "send"}, 0},
		{"a table's server of that name", map[string]int{"project:bank/send": 2}, Decision{Server: "bank", Identity: "target:sha256:12", Remote: "send"}, 0},
		{"one target under another name", map[string]int{"target:sha256:12/send": 2}, Decision{Server: "bank-1", Identity: "target:sha256:12", Remote: "send"}, 2},
		{"a journal of an earlier release", map[string]int{"bank/send": 3}, Decision{Server: "bank", Remote: "send"}, 3},
	} {
		t.Run("SEC-T4_"+tt.name, func(t *testing.T) {
			if got := tt.d.counted(tt.calls); got != tt.want {
				t.Errorf("%d calls, want %d", got, tt.want)
			}
		})
	}
}

func TestIdentityLabel(t *testing.T) {
	for identity, want := range map[string]string{"project:bank": "bank (project)", "user:bank": "bank (user)", "target:sha256:0123456789ab": "bank (01234567)", "": "bank", "target:": "bank"} {
		if got := IdentityLabel("bank", identity); got != want {
			t.Errorf("%q is %q, want %q", identity, got, want)
		}
	}
}
