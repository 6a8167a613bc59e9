package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// compose is what these tests look at of docker-compose.yml.
type compose struct {
	Services map[string]service
	Volumes  map[string]any
	Secrets  map[string]any
}

type service struct {
	Image       string
	Build       map[string]string
	Command     []string
	Entrypoint  []string
	Environment map[string]string
	Volumes     []string
	Secrets     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck *struct{ Test []string }
	StopGrace   string `yaml:"stop_grace_period"`
	Ports       []string
}

const top = "../../"

func readCompose(t *testing.T) compose {
	t.Helper()
	text, err := os.ReadFile(top + "docker-compose.yml")
	require.NoError(t, err)
	var c compose
	require.NoError(t, yaml.Unmarshal(text, &c))
	require.Contains(t, c.Services, "worker")
	require.Contains(t, c.Services, "web")
	return c
}

func TestComposeSetsOnlyWhatTheProgramReads(t *testing.T) {
	known := settingVariables()
	foreign := regexp.MustCompile(`^(AWS_|TEMPORAL_(ADDRESS|NAMESPACE)$)`)
	c := readCompose(t)
	for _, name := range []string{"worker", "web"} {
		s := c.Services[name]
		require.Equal(t, []string{name}, s.Command)
		for variable := range s.Environment {
			require.True(t, slices.Contains(known, variable) || foreign.MatchString(variable), "%s: nothing reads %s", name, variable)
		}
	}
}

func TestEveryFileThatComposeMountsOrRunsIsThere(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		mounted := map[string]string{}
		for _, v := range s.Volumes {
			source, target, _ := strings.Cut(v, ":")
			target, _, _ = strings.Cut(target, ":")
			if strings.HasPrefix(source, "./") {
				require.FileExists(t, existing(top+source), "%s mounts %s", name, source)
				mounted[target] = source
			} else {
				require.Contains(t, c.Volumes, source, name)
			}
		}
		for _, word := range s.Entrypoint {
			if dir, ok := mounted[filepath.Dir(word)]; ok {
				require.FileExists(t, filepath.Join(top, dir, filepath.Base(word)), name)
			}
		}
		for _, secret := range s.Secrets {
			require.Contains(t, c.Secrets, secret, name)
		}
		if file := s.Build["dockerfile"]; file != "" {
			require.FileExists(t, top+file)
		}
	}
}

// existing is the path itself, or something in the folder.
func existing(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return path
	}
	for _, e := range entries {
		if found := existing(filepath.Join(path, e.Name())); found != "" {
			return found
		}
	}
	return path
}

func TestServicesWaitForWhatThereIs(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		for other, how := range s.DependsOn {
			target, there := c.Services[other]
			require.True(t, there, "%s waits for %s", name, other)
			if how.Condition == "service_healthy" {
				require.NotNil(t, target.Healthcheck, "%s waits for the health of %s, which has no check", name, other)
			}
			require.Contains(t, []string{"service_healthy", "service_started", "service_completed_successfully"}, how.Condition)
		}
		require.NotContains(t, s.Image, "auto-setup", "it is deprecated")
		require.False(t, s.Image != "" && !strings.Contains(s.Image, ":"), "%s: %s has no version", name, s.Image)
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s to everybody", name, port)
		}
	}
}

func TestAWorkerIsGivenLongerToStopThanItTakes(t *testing.T) {
	c := readCompose(t)
	for name, needs := range map[string]time.Duration{"worker": 70 * time.Second, "web": 20 * time.Second} {
		given, err := time.ParseDuration(c.Services[name].StopGrace)
		require.NoError(t, err, name)
		require.Greater(t, given, needs, name)
	}
	stop, err := time.ParseDuration(c.Services["worker"].Environment["WORKER_STOP_TIMEOUT"])
	require.NoError(t, err)
	require.LessOrEqual(t, stop, time.Minute)
}

func TestTheScriptsOfADeploymentAreShellScripts(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"deploy/make-env", "deploy/healthcheck", "deploy/*/*.sh"} {
		found, err := filepath.Glob(top + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		scripts = append(scripts, found...)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		shell := strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "#!")
		out, err := exec.CommandContext(t.Context(), shell, "-n", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
		info, err := os.Stat(script)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o100, "%s can't be run", script)
	}
}
