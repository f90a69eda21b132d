package cast

// Scripts are the sessions in docs/pictures/recordings.
var Scripts = []Script{
	{
		Name: "first", Title: "tenon: a first answer, and a call that needs approval", Columns: 88, Rows: 22,
		Steps: []Step{
			{Type: "tenon init", Keys: "\r"},
			{Type: `tenon run "What is the weather in London?"`, Keys: "\r"},
			{Type: `tenon run "Count one up."`, Keys: "\r", Until: "dit arguments:"},
			{Type: "y", Keys: "\r"},
			{Type: "tenon runs show -1", Keys: "\r"},
		},
	},
	{
		Name: "chat", Title: "tenon chat: a conversation in a terminal", Columns: 88, Rows: 22, Setup: "tenon init",
		Steps: []Step{
			{Type: "tenon chat", Keys: "\r", Until: "Ask something"},
			{Type: "What is the weather in London?", Keys: "\r", Until: "cloudy."},
			{Type: "Count one up.", Keys: "\r", Until: "approval required"},
			{Keys: "y", Until: "so it runs only where you allow it."},
			{Keys: "\x0f", Until: "→"},
			{Keys: "\x04"},
		},
	},
	{
		Name: "waiting", Title: "tenon: a run waits for a decision", Columns: 88, Rows: 22, Setup: "tenon init",
		Steps: []Step{
			{Type: `tenon run --no-input "Count one up."`, Keys: "\r"},
			{Type: "tenon approvals list", Keys: "\r"},
			{Type: "tenon approvals allow run_", Keys: "\r"},
			{Type: "tenon runs resume -1", Keys: "\r"},
			{Type: "tenon runs list", Keys: "\r"},
		},
	},
}
