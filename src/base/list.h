/* list.h: List, intrusive doubly linked lists. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Both the head of a list and the link inside an element. */
typedef struct List {
    struct List *prev, *next;
} List;

/* The struct that holds this link. */
#define LIST_ENTRY(link, Type, member) ((Type *)((char *)(link)-offsetof(Type, member)))

static inline void list_init(List *l) {
    l->prev = l->next = l;
}
static inline bool list_is_empty(const List *l) {
    return l->next == l;
}
static inline void list_add(List *head, List *link) { /* at the end */
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}
static inline void list_remove(List *link) { /* the link is then an empty list: removing again does nothing */
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}
static inline List *list_first(const List *head) { /* NULL when empty */
    return head->next == head ? NULL : head->next;
}
