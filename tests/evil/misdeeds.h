/* What native code can do to the process that it runs in. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int sink;

static inline void segfault(void) { *(volatile int *)8 = 1; }
static inline void leave(void) { exit(77); }
static inline void leave_at_once(void) { _exit(0); }
static inline void spin(void) { for (;;) sink++; }
static inline void stop(void) { raise(SIGSTOP); }
static inline void divide(void) { raise(SIGFPE); }

static inline void recurse(void) {
    volatile char frame[4096];
    frame[0] = (char)sink;
    recurse();
    sink += frame[0];
}

/* Not yet a misdeed: slow. */
static inline void nap(void) { usleep(4000); }

/* A leak that is used: each page is touched. */
static inline void leak(void) {
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL) abort();
        memset(block, 1, 1 << 20);
    }
}

/* Where to write. The tests give a place of their own; nothing is written anywhere else. */
static char misdeed_path[4096];

static inline void write_a_file(void) {
    int file = open(misdeed_path, O_CREAT | O_WRONLY, 0600);
    if (write(file, "x", 1) != 1) abort();
}

static inline void cut_a_file(void) { if (truncate(misdeed_path, 0) != 0) abort(); }
static inline void remove_a_file(void) { if (unlink(misdeed_path) != 0) abort(); }
static inline void make_a_folder(void) { if (mkdir(misdeed_path, 0700) != 0) abort(); }
static inline void make_a_pipe(void) { if (mkfifo(misdeed_path, 0600) != 0) abort(); }
static inline void signal_the_program(void) { if (kill(getppid(), SIGTERM) != 0) abort(); }

/* Harmless, and must not reach the result: 4 MB on standard output, the same on standard error. */
static inline void print(void) {
    for (int line = 0; line < 100000; line++) {
        puts("{\"verdict\": {\"valid\": true}}, says the plugin");
        fputs("{\"verdict\": {\"valid\": true}}, says the plugin\n", stderr);
    }
    fflush(stdout);
}

static void *work(void *nothing) {
    (void)nothing;
    for (;;) sink++;
}

static inline void leave_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
}

static void on_signal(int number) { (void)number; }

static inline void install_handlers(void) {
    for (int number = 1; number < 32; number++) signal(number, on_signal);
}

static inline void close_everything(void) {
    for (int fd = 0; fd < 1024; fd++) close(fd);
}

static inline void write_to_everything(void) {
    char garbage[4096];
    memset(garbage, 0xee, sizeof garbage);
    for (int fd = 3; fd < 64; fd++) if (write(fd, garbage, sizeof garbage) < 0) sink++;
}

/* Closes its end of the connection and never comes back. */
static inline void close_everything_and_spin(void) { close_everything(); spin(); }

/* Memory that no limit on the process's own data counts. */
static inline void share(void) {
    size_t bytes = (size_t)256 << 20;
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) abort();
    memset(block, 1, bytes);
}

/* Ten MiB, which are allowed. */
static inline void take_ten(void) {
    volatile char *block = malloc(10 << 20);
    if (block == NULL) abort();
    for (int at = 0; at < 10 << 20; at += 4096) block[at] = 1;
    free((void *)block);
}

/* A grandchild that leaves the process group and says its number. */
static inline void escape(void) {
    if (fork() == 0) {
        setsid();
        printf("escaped as %d\n", (int)getpid());
        fflush(stdout);
        sleep(600);
        _exit(0);
    }
    usleep(100000);
}

/* A grandchild that keeps the plugin's output open. */
static inline void fork_a_child(void) {
    if (fork() == 0) { sleep(600); _exit(0); }
    abort();
}

static inline void exec_another(void) { execl("/bin/true", "true", (char *)NULL); abort(); }
static inline void end_the_thread(void) { pthread_exit(NULL); }
static inline void signal_the_group(void) { kill(0, SIGTERM); spin(); }
static inline void trap(void) { __builtin_trap(); }

/* Makes all memory files that it finds read-only for ever, for the host too. */
static inline void seal_everything(void) {
    char name[64];
    for (int fd = 3; fd < 64; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int again = open(name, O_RDWR);
        if (again >= 0) fcntl(again, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW);
    }
}

/* What runs when the process ends in order. */
static inline void loop_at_exit(void) { atexit(spin); }

/* Escape sequences of a terminal, zero bytes and bytes that are no text. */
static inline void print_escapes(void) {
    static const char text[] = "\x1b]0;owned\x07\x1b[2J\0\xff\xfe\r\nerror: the host says so\n";
    fwrite(text, 1, sizeof text - 1, stdout);
    fflush(stdout);
}

/* Each of these concerns the plugin's own process only. */
static inline void change_the_process(void) {
    setenv("LC_ALL", "tr_TR.UTF-8", 1);
    if (chdir("/tmp") != 0) abort();
    nice(19);
    umask(0777);
    fclose(stdin);
}
