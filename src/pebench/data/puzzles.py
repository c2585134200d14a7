"""Sequences that isolate position: copying, looking up, recalling, and tracking a state."""

import itertools
from abc import abstractmethod

import torch
from torch import Generator, Tensor

from pebench.data.batches import IGNORE
from pebench.data.sequences import END, SPECIAL, Sequences


def _answers_at_the_end(answers: Tensor, length: int) -> Tensor:
    """Return the answers of the last tokens of sequences of `length` tokens, in which nothing else is asked."""
    return torch.nn.functional.pad(answers, (length - answers.shape[1], 0), value=IGNORE)


def _alternating(first: Tensor, second: Tensor) -> Tensor:
    """Return one number of `first` (B, N), one of `second` (B, N), and so on: (B, 2N)."""
    return torch.stack((first, second), dim=2).flatten(1)


def _different(count: int, many: int, few: int, noise: Generator) -> Tensor:
    """Return, in each of `count` rows, `few` different numbers below `many`."""
    return torch.rand((count, many), generator=noise, dtype=torch.float32).argsort(dim=1)[:, :few]


class Copy(Sequences):
    """Letters, then the same letters again; each of them is asked (as in NoPE, arXiv 2305.19466)."""

    title, fewest_letters = "copy", 2

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Half of a sequence is given."""
        given = self.draw_letters((count, length // 2), noise)
        said = self.said(given)
        end = torch.full((count, 1), END, dtype=torch.long)
        tokens = torch.cat((given, end, said[:, :-1]), dim=1)
        return tokens, _answers_at_the_end(said, tokens.shape[1])

    def said(self, given: Tensor) -> Tensor:
        """Return what is to be said."""
        return given


class Reverse(Copy):
    """Letters, then the same letters from the last to the first (as in NoPE, arXiv 2305.19466)."""

    title = "reverse"

    def said(self, given: Tensor) -> Tensor:
        """Return the letters in reverse order."""
        return given.flip(1)


class LookUpIndex(Sequences):
    """Letters, then indices; at each the letter of that index, counted from the beginning, is asked.

    Indices are those of the shortest sequences in training, so that longer ones ask for trained places.
    """

    title, fewest_letters = "lookup_index", 2

    def words(self) -> int:
        """Return the number of indices."""
        return self.max_len // 2 - self.asked

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """All but the questions are letters."""
        given = self.draw_letters((count, length - self.asked), noise)
        index = torch.randint(self.words(), (count, self.asked), generator=noise)
        tokens = torch.cat((given, SPECIAL + index), dim=1)
        return tokens, _answers_at_the_end(given.gather(1, index), length)


class LookUpOffset(LookUpIndex):
    """Letters, then offsets; at each the letter so many tokens before the offset itself is asked.

    Offsets are those of the shortest sequences in training, as `LookUpIndex`'s indices are.
    """

    title = "lookup_offset"

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """All but the questions are letters, and no offset leads to a question."""
        given = self.draw_letters((count, length - self.asked), noise)
        place = torch.arange(length - self.asked, length)  # of the questions
        fewest = torch.arange(self.asked)  # offset 0 is the token before a question
        offset = (
            fewest
            + (torch.rand((count, self.asked), generator=noise, dtype=torch.float32) * (self.words() - fewest)).long()
        )
        tokens = torch.cat((given, SPECIAL + offset), dim=1)
        return tokens, _answers_at_the_end(given.gather(1, place - 1 - offset), length)


class WhatWhere(Sequences):
    """Letters with a few marks among them, then offsets, each followed by a mark; the token so far from it is asked.

    The indirect indexing of PoPE (arXiv 2509.10534), with many questions a sequence. It needs content to find the
    mark and position to go on from there. A mark stands once in a sequence; longer ones have no more of them.
    """

    title, fewest_letters = "what_where", 2
    REACH = 3
    """The farthest offset, to both sides."""
    MARKS = 8

    def words(self) -> int:
        """Return the number of offsets and marks."""
        return 2 * self.REACH + self.MARKS

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Half of a sequence are letters and marks, of which the outermost are not asked about."""
        given, asked = length // 2, (length + 1) // 4
        marked = min(given // 4, self.asked)
        tokens = self.draw_letters((count, given), noise)
        places = self.REACH + _different(count, given - 2 * self.REACH, marked, noise)
        tokens.scatter_(1, places, SPECIAL + 2 * self.REACH + _different(count, self.MARKS, marked, noise))
        place = places.gather(1, torch.randint(marked, (count, asked), generator=noise))
        step = torch.randint(2 * self.REACH, (count, asked), generator=noise)
        offset = torch.cat((torch.arange(-self.REACH, 0), torch.arange(1, self.REACH + 1)))[step]
        # The offset comes first, so that the mark, where the answer is asked, has all it needs beside it.
        questions = _alternating(SPECIAL + step, tokens.gather(1, place))
        answers = tokens.gather(1, place + offset)
        answers = _alternating(torch.full_like(answers, IGNORE), answers)
        tokens = torch.cat((tokens, questions), dim=1)
        return tokens, _answers_at_the_end(answers, tokens.shape[1])


class Recall(Sequences):
    """Keys, each followed by its value; wherever a key stands again its value is asked.

    Multi-query associative recall (Arora et al., Zoology, arXiv 2312.04927). A sequence has a key for each eight of
    its tokens; those of a sequence of eight times the length are all keys that there are.
    """

    title, fewest_letters = "recall", 2

    def words(self) -> int:
        """Return the number of keys; letters are the values."""
        return self.max_len

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """A key and its value are two tokens."""
        pairs, different = length // 2, length // 8
        keys, values = _different(count, self.words(), different, noise), self.draw_letters((count, different), noise)
        chosen = torch.randint(different, (count, pairs), generator=noise)
        earlier = (chosen[:, :, None] == chosen[:, None, :]).tril(-1).any(dim=2)  # the key has been there before
        value = values.gather(1, chosen)
        answers = _alternating(torch.where(earlier, value, IGNORE), torch.full_like(value, IGNORE))
        return _alternating(SPECIAL + keys.gather(1, chosen), value), answers


class FlipFlop(Sequences):
    """Instructions to write, ignore or read a bit, each followed by the bit; a read bit is the one last written.

    The flip-flop language (Liu et al., arXiv 2306.00946): four of five instructions are to ignore, the
    first is to write and the last to read. The bits that are read are asked.
    """

    title = "flip_flop"
    WRITE, READ, SKIP, BIT = range(SPECIAL, SPECIAL + 4)

    def words(self) -> int:
        """Return three instructions and two bits."""
        return 5

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """An instruction and its bit are two tokens."""
        pairs = length // 2
        kinds = torch.tensor([self.WRITE, self.READ, *8 * [self.SKIP]])
        instruction = kinds[torch.randint(10, (count, pairs), generator=noise)]
        instruction[:, 0], instruction[:, -1] = self.WRITE, self.READ
        bit = torch.randint(2, (count, pairs), generator=noise)
        place = torch.arange(pairs).expand(count, -1)
        written = torch.where(instruction == self.WRITE, place, -1).cummax(dim=1).values  # where it was last
        reads = instruction == self.READ
        bit = torch.where(reads, bit.gather(1, written), bit) + self.BIT
        answers = _alternating(torch.where(reads, bit, IGNORE), torch.full_like(bit, IGNORE))
        return _alternating(instruction, bit), answers


class WordProblem(Sequences):
    """Elements of a group; at each the product of all so far is asked, so that a model must keep track of a state.

    A mark stands before them. Without it a causal model that knows offsets alone sees, in a row of equal elements, the
    mean of equal vectors, and cannot tell how many they are.
    """

    BEGIN, FIRST = SPECIAL, SPECIAL + 1

    @staticmethod
    @abstractmethod
    def products() -> Tensor:
        """Return the group's multiplication table."""

    @classmethod
    def generators(cls) -> Tensor:
        """Return the elements that sequences are made of: by default all."""
        return torch.arange(len(cls.products()))

    def words(self) -> int:
        """Return the order of the group, and one for the mark."""
        return 1 + len(self.products())

    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Every token but the mark is an element, and is asked."""
        table, generators = self.products(), self.generators()
        elements = generators[torch.randint(len(generators), (count, length - 1), generator=noise)]
        states = [elements[:, 0]]
        for element in elements[:, 1:].unbind(1):
            states.append(table[states[-1], element])
        tokens = torch.nn.functional.pad(self.FIRST + elements, (1, 0), value=self.BEGIN)
        return tokens, _answers_at_the_end(self.FIRST + torch.stack(states, dim=1), length)


class Parity(WordProblem):
    """Bits; at each the parity of all so far is asked: the word problem of the group of two elements."""

    title = "parity"

    @staticmethod
    def products() -> Tensor:
        """Return addition modulo 2."""
        return torch.tensor([[0, 1], [1, 0]])


class A5(WordProblem):
    """Two even permutations of five things; at each the product of all so far is asked.

    The word problem of the alternating group A5, the smallest whose word problem is hard for NC1 (Barrington 1989;
    Merrill et al., The Illusion of State, arXiv 2404.08819). Sequences are made of a cycle of three and one of five
    things, whose products are all 60 elements: as hard in length, and without 3,600 products to learn by heart first.
    """

    title = "a5"
    CYCLES = ((1, 2, 0, 3, 4), (1, 2, 3, 4, 0))

    @staticmethod
    def products() -> Tensor:
        """Return the composition of the 60 even permutations, in lexicographic order."""
        elements = _even_permutations()
        number = {element: index for index, element in enumerate(elements)}
        return torch.tensor([[number[tuple(b[i] for i in a)] for b in elements] for a in elements])

    @classmethod
    def generators(cls) -> Tensor:
        """Return the two cycles."""
        return torch.tensor([_even_permutations().index(cycle) for cycle in cls.CYCLES])


def _even_permutations() -> list[tuple[int, ...]]:
    return [p for p in itertools.permutations(range(5)) if _inversions(p) % 2 == 0]


def _inversions(permutation: tuple[int, ...]) -> int:
    return sum(a > b for a, b in itertools.combinations(permutation, 2))
