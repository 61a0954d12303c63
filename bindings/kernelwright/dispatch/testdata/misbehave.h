/* What a kernel may do to the process that launches it, by name. */
#ifndef KERNELWRIGHT_TESTDATA_MISBEHAVE_H
#define KERNELWRIGHT_TESTDATA_MISBEHAVE_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A process that stays, as its own note says in the folder MOCK_NOTES. */
static void stay(void) {
  char path[4096];
  const char* notes = getenv("MOCK_NOTES");
  snprintf(path, sizeof path, "%s/%d", notes == NULL ? "/tmp" : notes, (int)getpid());
  close(open(path, O_CREAT | O_WRONLY, 0644));
  for (;;) pause();
}

static void ignore_signals(void) {
  for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
}

/* In a session of its own, an orphan; with or without the pipes of the process. */
static void daemonise(int keeps_pipes) {
  if (fork() != 0) return;
  setsid();
  ignore_signals();
  prctl(PR_SET_PDEATHSIG, 0);
  if (fork() != 0) _exit(0);
  if (!keeps_pipes) {
    for (int fd = 0; fd < 256; ++fd) close(fd);
  }
  stay();
}

static void flood(int first, int last) {
  static char text[1 << 16];
  memset(text, 'x', sizeof text);
  for (;;) {
    for (int fd = first; fd <= last; ++fd) {
      if (write(fd, text, sizeof text) < 0 && fd == last) usleep(100);
    }
  }
}

/* Each process makes the next and ends. */
static void run_away(void) {
  setsid();
  for (;;) {
    if (fork() != 0) _exit(0);
  }
}

static void misbehave(const char* deed) {
  if (deed == NULL) return;
  if (strcmp(deed, "fork_and_die") == 0) {
    if (fork() == 0) stay();
    raise(SIGSEGV);
  } else if (strcmp(deed, "fork_and_return") == 0) {
    fork();
  } else if (strcmp(deed, "daemon") == 0) {
    daemonise(1);
  } else if (strcmp(deed, "daemon_and_die") == 0) {
    daemonise(1);
    raise(SIGSEGV);
  } else if (strcmp(deed, "silent_daemon_and_hang") == 0) {
    daemonise(0);
    stay();
  } else if (strcmp(deed, "ignore_signals") == 0) {
    ignore_signals();
    stay();
  } else if (strcmp(deed, "flood_and_hang") == 0) {
    flood(1, 2);
  } else if (strcmp(deed, "flood_everything") == 0) {
    flood(3, 63);
  } else if (strcmp(deed, "close_pipes_and_hang") == 0) {
    for (int fd = 0; fd < 256; ++fd) close(fd);
    stay();
  } else if (strcmp(deed, "close_pipes_and_exit") == 0) {
    for (int fd = 0; fd < 256; ++fd) close(fd);
    _exit(0);
  } else if (strcmp(deed, "stop") == 0) {
    raise(SIGSTOP);
  } else if (strcmp(deed, "stop_parent") == 0) {
    kill(getppid(), SIGSTOP);
    stay();
  } else if (strcmp(deed, "kill_parent") == 0) {
    prctl(PR_SET_PDEATHSIG, 0);
    kill(getppid(), SIGKILL);
    stay();
  } else if (strcmp(deed, "kill_group") == 0) {
    kill(0, SIGKILL);
  } else if (strcmp(deed, "exec") == 0) {
    execl("/bin/sh", "sh", "-c", "echo $$ >\"$MOCK_NOTES/$$\"; while :; do sleep 1; done", (char*)NULL);
  } else if (strcmp(deed, "exit") == 0) {
    _exit(0);
  } else if (strcmp(deed, "first_thread_ends") == 0) {
    if (fork() == 0) stay();
    syscall(SYS_exit, 0);
  } else if (strcmp(deed, "run_away") == 0) {
    if (fork() == 0) run_away();
    raise(SIGSEGV);
  } else {
    fprintf(stderr, "MOCK_DEED, MOCK_PLANS or MOCK_LOADS is %s\n", deed);
    abort();
  }
}

/* When the library is loaded. */
__attribute__((constructor)) static void misbehave_at_load(void) { misbehave(getenv("MOCK_LOADS")); }

#endif
