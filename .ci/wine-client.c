/* What clients on Windows do, for `.ci/wine`.
 *
 *   client.exe read COMMAND...  runs a command, reads its stdout and stderr to their end, and exits as the command does
 *   client.exe hold PIPE        creates a named pipe, answers no client, and stays
 */
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

/* Returns the command line after its first two words, which have no spaces or are quoted. */
static wchar_t *rest_of_command_line(void) {
    wchar_t *at = GetCommandLineW();
    for (int word = 0; word < 2; word++) {
        BOOL is_quoted = *at == L'"';
        at += is_quoted;
        while (*at && *at != (is_quoted ? L'"' : L' ')) {
            at++;
        }
        at += is_quoted && *at;
        while (*at == L' ') {
            at++;
        }
    }
    return at;
}

static int read_to_end(void) {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    HANDLE ours, theirs;
    if (!CreatePipe(&ours, &theirs, &inherited, 0) || !SetHandleInformation(ours, HANDLE_FLAG_INHERIT, 0)) {
        return 101;
    }
    /* The command gets the pipe alone, not our own output. */
    SetHandleInformation(GetStdHandle(STD_OUTPUT_HANDLE), HANDLE_FLAG_INHERIT, 0);
    SetHandleInformation(GetStdHandle(STD_ERROR_HANDLE), HANDLE_FLAG_INHERIT, 0);
    STARTUPINFOW startup = {.cb = sizeof startup, .dwFlags = STARTF_USESTDHANDLES};
    startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    startup.hStdOutput = startup.hStdError = theirs;
    PROCESS_INFORMATION child;
    if (!CreateProcessW(NULL, rest_of_command_line(), NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child)) {
        return 102;
    }
    CloseHandle(theirs);
    char bytes[4096];
    DWORD count, status = 103;
    while (ReadFile(ours, bytes, sizeof bytes, &count, NULL) && count > 0) {
        fwrite(bytes, 1, count, stdout);
    }
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &status);
    return (int)status;
}

static int hold(const char *name) {
    HANDLE pipe = CreateNamedPipeA(name, PIPE_ACCESS_DUPLEX, PIPE_TYPE_BYTE | PIPE_WAIT, PIPE_UNLIMITED_INSTANCES, 4096,
                                   4096, 0, NULL);
    if (pipe == INVALID_HANDLE_VALUE) {
        return 101;
    }
    puts("held");
    fflush(stdout);
    Sleep(INFINITE);
    return 0;
}

int main(int count, char **words) {
    if (count > 2 && strcmp(words[1], "read") == 0) {
        return read_to_end();
    }
    if (count == 3 && strcmp(words[1], "hold") == 0) {
        return hold(words[2]);
    }
    return 100;
}
