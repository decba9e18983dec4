"""A day's orders through JSON and back, and the totals of each customer: what many small services do all day."""

from __future__ import annotations

import json
from collections import Counter


def make_orders(count: int) -> list[dict[str, object]]:
    """Return made-up orders, the same in every run."""
    return [
        {
            "id": number,
            "customer": f"customer-{number * 7919 % 97}",
            "items": [{"sku": f"A{number * 31 % 503}", "quantity": number % 5 + 1, "cents": number * 37 % 9000}],
            "note": "gift – please wrap" if number % 11 == 0 else None,
        }
        for number in range(count)
    ]


def spent_by_customer(document: str) -> Counter[str]:
    """Return what each customer spent, in cents."""
    spent: Counter[str] = Counter()
    for order in json.loads(document):
        spent[order["customer"]] += sum(item["quantity"] * item["cents"] for item in order["items"])
    return spent


def main() -> None:
    """Print the three best customers."""
    document = json.dumps(make_orders(1000))
    for customer, cents in spent_by_customer(document).most_common(3):
        print(f"{customer} {cents / 100:.2f}")


if __name__ == "__main__":
    main()
