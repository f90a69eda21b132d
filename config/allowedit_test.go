package config_test

import "testing"

// TestAllowServerEdit checks that a project cannot permit API requests to change its own configuration file.
func TestAllowServerEdit(t *testing.T) {
	const key = "serve: {allow_server_edit: true}\n"
	p := newProject(t, map[string]string{"tenon.yaml": "version: 1\n", "~/.config/tenon/config.yaml": key})
	if !p.running.Serve.AllowServerEdit || p.running.Layer("serve.allow_server_edit") != "user" {
		t.Error("the user's file does not lift it")
	}
	p = newProject(t, map[string]string{"tenon.yaml": "version: 1\n"})
	p.write(map[string]string{"tenon.yaml": key})
	if u, err := p.update(); err == nil {
		t.Errorf("SEC-F3: a project's file lifts it: %+v", u.Held)
	}
	p.write(map[string]string{"tenon.yaml": "version: 1\n", "~/.config/tenon/config.yaml": key})
	u, err := p.update()
	if err != nil || u.Now != nil || len(u.Held) != 1 || u.Held[0].Path != "serve.allow_server_edit" || !u.Held[0].Starts {
		t.Errorf("SEC-F9: an edit of the user's file lifts it at once: %v, %+v", err, u)
	}
}
