package lance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"structs"
	"unsafe"

	"github.com/ebitengine/purego"
)

// abiVersion is the only version of the native library's interface this package
// speaks. It climbs with every change of native/README.md that old callers would
// not survive.
const abiVersion = 2

// EnvLibrary names the environment variable with the path of the native library.
const EnvLibrary = "LANCEFLEET_NATIVE"

// request and reply have the layout of LfRequest and LfReply.
type request struct {
	_ structs.HostLayout

	engine, cancel uint64
	op             *byte
	opLen          uintptr
	json           *byte
	jsonLen        uintptr
	body           *byte
	bodyLen        uintptr
}

// The pointers of a reply are the library's: kept as numbers, since Rust's empty
// vectors have addresses that Go's collector would take for corruption.
type reply struct {
	_ structs.HostLayout

	json    uintptr
	jsonLen uintptr
	body    uintptr
	bodyLen uintptr
}

// library is the native library with its symbols bound. It is never unloaded:
// its threads may still run.
type library struct {
	path       string
	call       func(*request, *reply) int32
	replyFree  func(*reply)
	cancelNew  func() uint64
	cancelFire func(uint64)
	cancelFree func(uint64)
}

func libraryError(path, format string, args ...any) *Error {
	return &Error{Class: Library, Op: "load", URI: path, Message: fmt.Sprintf(format, args...)}
}

// loadLibrary finds the native library, loads it and checks that it fits.
func loadLibrary(option string) (*library, error) {
	path, err := findLibrary(option)
	if err != nil {
		return nil, err
	}
	return bindLibrary(path)
}

func bindLibrary(path string) (*library, error) {
	// dlerror is kept per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, libraryError(path, "cannot be loaded: %v", err)
	}
	lib := &library{path: path}
	var version func() uint32
	// The version comes first: a library of another version may lack the rest.
	if err := bind(handle, path, "lf_abi_version", &version); err != nil {
		return nil, err
	}
	if v := version(); v != abiVersion {
		return nil, libraryError(path, "has abi version %d, this program needs %d: build both from one revision", v, abiVersion)
	}
	symbols := map[string]any{
		"lf_call":        &lib.call,
		"lf_reply_free":  &lib.replyFree,
		"lf_cancel_new":  &lib.cancelNew,
		"lf_cancel_fire": &lib.cancelFire,
		"lf_cancel_free": &lib.cancelFree,
	}
	for name, target := range symbols {
		if err := bind(handle, path, name, target); err != nil {
			return nil, err
		}
	}
	return lib, nil
}

func bind(handle uintptr, path, name string, target any) error {
	symbol, err := purego.Dlsym(handle, name)
	if err != nil || symbol == 0 {
		return libraryError(path, "has no symbol %s: not lancefleet's native library, or another version of it", name)
	}
	purego.RegisterFunc(target, symbol)
	return nil
}

// findLibrary returns the absolute path of the library. A path that was asked
// for by name is taken or refused, never replaced by another place.
func findLibrary(option string) (string, error) {
	if option != "" {
		return checkLibrary(option, "named by the options")
	}
	if env := os.Getenv(EnvLibrary); env != "" {
		return checkLibrary(env, "named by "+EnvLibrary)
	}
	return firstLibrary(libraryPlaces())
}

func firstLibrary(places []string) (string, error) {
	for _, path := range places {
		if _, err := os.Stat(path); err == nil {
			return checkLibrary(path, "found")
		}
	}
	return "", libraryError("", "%s is neither beside the executable nor in the build folder, and %s is not set; looked at %q",
		libraryName(), EnvLibrary, places)
}

func checkLibrary(path, why string) (string, error) {
	// Without a slash the dynamic loader would look through the system's folders.
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", libraryError(path, "%s, but not a usable path: %v", why, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", libraryError(abs, "%s, but there is no such file", why)
	case err != nil:
		return "", libraryError(abs, "%s, but cannot be looked at: %v", why, err)
	case info.IsDir():
		return "", libraryError(abs, "%s, but it is a folder: give the path of %s", why, libraryName())
	}
	return abs, nil
}

// libraryPlaces lists where to look when nobody said: beside the executable,
// then where a development build leaves it.
func libraryPlaces() []string {
	var dirs []string
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe))
		if target, err := filepath.EvalSymlinks(exe); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	if target := buildFolder(); target != "" {
		dirs = append(dirs, filepath.Join(target, "fast"))
	}
	var places []string
	for i, dir := range dirs {
		if i == 0 || dir != dirs[i-1] {
			places = append(places, filepath.Join(dir, libraryName()))
		}
	}
	return places
}

// buildFolder is where Taskfile.yml lets cargo build; "" when nothing says.
func buildFolder() string {
	if target := os.Getenv("CARGO_TARGET_DIR"); target != "" {
		return target
	}
	if cache := os.Getenv("LANCEFLEET_CACHE"); cache != "" {
		return filepath.Join(cache, "target")
	}
	if cache := os.Getenv("XDG_CACHE_HOME"); cache != "" {
		return filepath.Join(cache, "lancefleet", "target")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "lancefleet", "target")
}

func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "liblancefleet_native.dylib"
	}
	return "liblancefleet_native.so"
}

// nativeBytes is a view of memory that the library owns: valid until the reply
// is freed.
func nativeBytes(address *uintptr, length uintptr) []byte {
	if length == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(address)), int(length))
}
